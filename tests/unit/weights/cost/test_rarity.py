"""What a server pays for a host of a rare kind.

In the tests, a host of the kind A is one of four hosts: its rarity is 0.03 x (sqrt(4 / 1) - 1) =
0.03. That of the three hosts of the kind B is 0.03 x (sqrt(4 / 3) - 1) = 0.004641.
"""

import pytest

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights import FRAGMENTATION, Forest, make_forest
from cpu_tiers.weights.cost.gradient import History, HostKinds
from cpu_tiers.weights.cost.typical_servers import ServerShape
from tests.unit.weights.gpu_hosts import Summary, groups, history, host, provider

A, B, NONE = frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_B"}), frozenset[str]()
ROOTS = ("a", "b", "c", "d")
HALF = groups(1, 500)
ASKED = groups(1, 1_000, required=A)
"""A server that asks for the kind A."""


def cloud(free_of_a: int = 1_000) -> dict[str, Summary]:
    """Return a host of the kind A and three of the kind B; all of B are idle."""
    summaries = host("a", 16, free_of_a)
    for root in ROOTS[1:]:
        summaries |= host(root, 16, 1_000, trait="CUSTOM_B")
    return summaries


def forest(
    summaries: dict[str, Summary], known: History, server: tuple[RequestGroup, ...] = HALF
) -> Forest:
    amounts = ServerShape.from_groups(server).amounts()
    return make_forest(summaries, amounts, scoring=FRAGMENTATION, groups=server, history=known)


def further_cost(hosts: Forest, root: str) -> float:
    """Return what rarity adds to the cost of a host, in sizes of the server.

    A score is size / (size + cost), and a host by itself is not rare.
    """
    return 1 / hosts.score(root) - 1 / hosts.scores_of([root])[0]


def test_a_rare_kind_of_host() -> None:
    rarities = HostKinds({"a": A, "b": B, "c": B, "d": B}).rarities(ROOTS)
    assert rarities == pytest.approx([0.03, 0.004641, 0.004641, 0.004641], abs=1e-6)


@pytest.mark.parametrize(
    ("kinds", "roots"),
    [
        pytest.param({}, ROOTS, id="nobody asks for a trait"),
        pytest.param(dict.fromkeys(ROOTS, NONE), ROOTS, id="no host has the trait"),
        pytest.param({"a": A, "b": B, "c": B}, ("b", "c"), id="all hosts with room have it"),
        pytest.param({"a": A, "b": B}, (), id="no host"),
    ],
)
def test_hosts_of_a_single_kind(kinds: dict[str, frozenset[str]], roots: tuple[str, ...]) -> None:
    assert HostKinds(kinds).rarities(roots) == []


def test_the_traits_of_all_providers_of_a_host_are_the_kind_of_the_host() -> None:
    """The host has A on a device and B on another; each other host has B on its only device.

    Kinds: {A, B} once and {B} three times, if somebody asks for A and somebody for B.
    """
    summaries = cloud() | {"a1": provider("a", {"VGPU": {"capacity": 9, "used": 9}}, ["CUSTOM_B"])}
    hosts = forest(summaries, history(ASKED, groups(1, 1_000, required=B), ASKED))
    assert further_cost(hosts, "a") == pytest.approx(0.03)


def test_a_server_pays_for_the_whole_of_an_idle_host() -> None:
    """Units: 16 VCPU and 1,000 VGPU, both of weight 1 as nothing is in use.

    The size is 1/16 + 500/1000 = 0.5625, and an idle host is 1 + 1 = 2 average hosts.
    """
    hosts = forest(cloud(), history(ASKED))
    assert further_cost(hosts, "a") == pytest.approx(0.03 * 2 / 0.5625)
    assert further_cost(hosts, "b") == pytest.approx(0.004641 * 2 / 0.5625, abs=1e-6)
    assert hosts.scores()["a"] < hosts.scores()["b"]


@pytest.mark.parametrize("free_of_a", [1_000, 600])
def test_the_score_of_a_host_is_the_score_among_all_hosts(free_of_a: int) -> None:
    hosts = forest(cloud(free_of_a), history(ASKED))
    assert {root: hosts.score(root) for root in ROOTS} == hosts.scores()


def test_a_server_pays_only_for_the_server_on_a_host_in_use() -> None:
    assert further_cost(forest(cloud(600), history(ASKED)), "a") == pytest.approx(0.03)


def test_the_next_server_of_a_request_finds_a_host_in_use() -> None:
    hosts = forest(cloud(), history(ASKED))
    hosts.claim("a", {"VCPU": 1, "VGPU": 500}, {"a": {"VCPU": 1}, "a0": {"VGPU": 500}})
    assert further_cost(hosts, "a") == pytest.approx(0.03)


def test_without_requests_for_traits_nothing_changes() -> None:
    hosts = forest(cloud(), history(HALF))
    assert [further_cost(hosts, root) for root in ROOTS] == [0.0] * 4


def test_only_traits_that_are_asked_for_make_a_kind() -> None:
    refusing = groups(1, 1_000, forbidden=B)
    either = groups(1, 1_000, any_of=frozenset({A | B}))
    assert ServerShape.from_groups(refusing).wanted == frozenset()
    assert ServerShape.from_groups(refusing).traits == B
    assert ServerShape.from_groups(either).wanted == A | B
    assert history(refusing).room.wanted == frozenset()
    assert history(refusing, ASKED).room.wanted == A


def test_a_trait_that_was_refused_before_is_asked_for() -> None:
    """The trait decides already, and makes kinds when the typical servers are worked out anew."""
    known = history(groups(1, 1_000, forbidden=A), *[ASKED] * 3)
    assert known.room.wanted == A
