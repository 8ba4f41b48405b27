"""Which servers find no place if a host fails, in the order in which Nova takes hosts."""

from dataclasses import replace

from cpu_tiers.tools.plan.hosts import Group, Hosts
from cpu_tiers.tools.plan.survive import Survivors
from tests.unit.plan.clouds import equal_hosts, hosts_of, server


def homeless(hosts: Hosts, *failed: str) -> list[str]:
    survivors = Survivors(hosts, hosts.room(), hosts.by_host())
    return [each.uuid for each in survivors.lose(failed).homeless]


def test_the_servers_that_find_no_place() -> None:
    servers = [server("a", "h0", VCPU=4), server("b", "h0", VCPU=3), server("c", "h1", VCPU=4)]
    assert homeless(hosts_of(equal_hosts(3, VCPU=8), servers), "h0") == []
    assert homeless(hosts_of(equal_hosts(2, VCPU=8), servers), "h0") == ["b"]  # 8 - 4 - 4
    assert homeless(hosts_of(equal_hosts(2, VCPU=8), servers), "h1") == ["c"]  # 8 - 7


def test_nova_takes_the_host_with_the_most_room() -> None:
    # Nova spreads: a and b go to h1 and h2, so the server of 6 has no place; packed it would have.
    servers = [server("a", "h0", VCPU=2), server("b", "h0", VCPU=2), server("c", "h0", VCPU=6)]
    assert homeless(hosts_of(equal_hosts(3, VCPU=7), servers), "h0") == ["c"]


def test_hosts_that_fail_together() -> None:
    servers = [server(name, host, VCPU=5) for name, host in (("a", "h0"), ("b", "h1"))]
    hosts = hosts_of(equal_hosts(3, VCPU=8), servers)
    assert homeless(hosts, "h0") == []
    assert homeless(hosts, "h0", "h1") == ["b"]


def test_a_group_that_must_be_apart() -> None:
    servers = [server("a", "h0", VCPU=1), server("b", "h1", VCPU=1)]
    servers = [replace(each, apart=("g",)) for each in servers]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers, {"g": Group()})
    assert homeless(hosts, "h0") == ["a"]


def test_a_server_that_cannot_be_migrated_is_evacuated_all_the_same() -> None:
    locked = replace(server("a", "h0", VCPU=1), stays="it is locked")
    assert homeless(hosts_of(equal_hosts(2, VCPU=8), [locked]), "h0") == []
