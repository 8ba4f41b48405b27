"""What is to be mended of hosts."""

from cpu_tiers.tools.plan.relief import relief_of
from tests.unit.plan.clouds import equal_hosts, hosts_of, server


def test_what_is_over_its_capacity() -> None:
    hosts = hosts_of(
        equal_hosts(2, VCPU=8),
        [server("a", "h0", VCPU=8), server("b", "h1", VCPU=1), server("c", "h0", VCPU=1)],
    )
    # a has come to h0 since the audit of h1
    short = {"h1": frozenset({"a", "b"})}
    relief = relief_of(hosts, frozenset({"h0", "h1"}), short, {"h0": "T", "h1": "T"})
    assert relief.over == ("1 VCPU of h0",)
    assert [each.uuid for each in relief.short] == ["b"]
    assert relief.question.leaving == {"b"}
    assert relief.marked == (("h0", "T"),)  # of h1, a server leaves
    of_h1 = relief_of(hosts, frozenset({"h1"}), {}, {})
    assert (of_h1.over, of_h1.short, of_h1.question.leaving) == ((), (), frozenset())
