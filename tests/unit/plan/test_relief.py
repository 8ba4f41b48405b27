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
    assert relief.faults == [
        "Over capacity now: 1 VCPU of h0",
        "1 server short of the CPU time that is due to it",
        "h0 has T, which nova.conf avoids: --audit says which servers of the host are short",
    ]
    assert relief.question.leaving == {"b"}
    assert relief.marked == ["h0"]  # of h1, a server leaves
    of_h1 = relief_of(hosts, frozenset({"h1"}), {}, {})
    assert (of_h1.faults, of_h1.question.leaving) == ([], frozenset())


def test_the_servers_that_are_too_much_for_a_node_leave() -> None:
    hosts = hosts_of(
        equal_hosts(2, VCPU=8), [server("a", "h0", VCPU=1), server("b", "h0", VCPU=1)]
    )
    oversold = {"h0": frozenset({"a"})}
    relief = relief_of(hosts, frozenset({"h0", "h1"}), {}, {}, oversold)
    assert relief.faults == ["1 server too much for CPUs, such as a NUMA node, that are oversold"]
    assert relief.question.leaving == {"a"}
