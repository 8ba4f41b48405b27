"""Which host, and which provider of the host, loses the least room for typical servers."""

from collections.abc import Mapping

import pytest

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights import FRAGMENTATION, Forest, make_forest
from cpu_tiers.weights.cost.gradient import History, UsableRoom
from cpu_tiers.weights.cost.typical_servers import ServerShape, typical
from cpu_tiers.weights.cost.usable import Offer, UsableAmounts
from tests.unit.weights.gpu_hosts import Summary, groups, history, host, provider
from tests.unit.weights.summaries import scale_of


def forest(
    summaries: Mapping[str, Summary], request: tuple[RequestGroup, ...], known: History
) -> Forest:
    """Return the forest, in which each device of each host with enough room is a candidate."""
    amounts = ServerShape.from_groups(request).amounts()
    made = make_forest(summaries, amounts, scoring=FRAGMENTATION, groups=request, history=known)
    roots = {summary["root_provider_uuid"] for summary in summaries.values()}
    for root in roots:
        whole = {root: {"VCPU": amounts["VCPU"]}}
        devices = [uuid for uuid in summaries if uuid.startswith(root) and uuid != root]
        made.offer(root, [{**whole, uuid: {"VGPU": amounts["VGPU"]}} for uuid in devices])
    return made


WHOLE = groups(1, 1_000)
"""A server with a whole device."""


def test_a_part_of_a_device_goes_where_no_whole_device_is_lost() -> None:
    summaries = {**host("a", 16, 1_000, 600), **host("b", 16, 1_000, 1_000)}
    half = groups(1, 500)
    hosts = forest(summaries, half, history(WHOLE, WHOLE, WHOLE))
    assert hosts.best("a") == 1  # the device of which 600 are free
    assert hosts.score("a") > hosts.score("b")


def test_of_equal_candidates_the_first_wins() -> None:
    hosts = forest(host("a", 16, 600, 600), groups(1, 500), history(WHOLE))
    assert hosts.best("a") == 0


def test_cpus_that_make_devices_useless_count() -> None:
    """On b, no CPU would be left for a server with the idle device."""
    summaries = {**host("a", 14, 1_000, 100), **host("b", 4, 1_000, 100)}
    hosts = forest(summaries, groups(4, 100), history(groups(4, 1_000)))
    assert hosts.score("a") > hosts.score("b")


def test_a_device_of_a_trait_that_typical_servers_require_is_spared() -> None:
    wanted = groups(1, 1_000, required=frozenset({"CUSTOM_B"}))
    summaries = {**host("a", 16, 1_000), **host("b", 16, 1_000, trait="CUSTOM_B")}
    hosts = forest(summaries, WHOLE, history(wanted, wanted))
    assert hosts.score("a") > hosts.score("b")


def test_a_server_with_a_numa_node_avoids_hosts_without_nodes() -> None:
    """Both hosts have 8 free VCPU. The typical servers cannot use those of the NUMA node."""
    avoiding = (RequestGroup(resources={"VCPU": 4}, forbidden=frozenset({"HW_NUMA_ROOT"})),)
    summaries = {
        "flat": provider("flat", {"VCPU": {"capacity": 16, "used": 8}}, []),
        "nodes": provider("nodes", {}, []),
        "node": provider("nodes", {"VCPU": {"capacity": 16, "used": 8}}, ["HW_NUMA_ROOT"]),
    }
    known = History()
    known.note(ServerShape.from_groups(avoiding), scale_of(summaries.values(), 2))
    request = {"VCPU": 4}
    hosts = make_forest(summaries, request, scoring=FRAGMENTATION, history=known)
    hosts.offer("flat", [{"flat": request}])
    hosts.offer("nodes", [{"node": request}])
    assert hosts.score("nodes") > hosts.score("flat")


def test_typical_servers_and_the_worth_of_their_classes() -> None:
    """Used: 8/16 VCPU, 200/2000 VGPU, so the weights are 1 and (0.2 / 0.6)^2 = 1/9.

    The server requests 4/16 = 1/4 of the VCPU, and 1000/2000/9 = 1/18 of the VGPU: of VCPU 4.5 as
    much. So a unit of VCPU is worth 1/16 host, and a unit of VGPU 4.5/2000.
    """
    scale = scale_of(host("a", 8, 900, 900).values(), 1)
    often, rare = ServerShape.from_groups(groups(4, 1_000)), ServerShape.from_groups(groups(1))
    (first,) = typical({often: 0.96, rare: 0.04}, scale)
    assert (first.shape, first.weight) == (often, 1.0)  # the only typical server
    assert first.factors == pytest.approx({"VCPU": 1 / 16, "VGPU": 4.5 / 2_000})


def test_a_class_of_which_nothing_is_requested_does_not_count() -> None:
    nothing = ServerShape(anywhere=(("VCPU", 0),), groups=())
    assert typical({nothing: 1.0}, scale_of(host("a", 8).values(), 1)) == []


def test_rare_servers_are_typical_if_large() -> None:
    """Of 100 requests, 97 are for 1 VCPU, 2 for 12 VCPU, and 1 for 4 VCPU: 97, 24 and 4 of 125."""
    small, large, other = (ServerShape.from_groups(groups(vcpus)) for vcpus in (1, 12, 4))
    scale = scale_of(host("a", 8).values(), 1)
    found = typical({small: 0.97, large: 0.02, other: 0.01}, scale)
    assert [each.shape for each in found] == [small, large]  # 24/125 is more than a twentieth
    # 12 of 16 VCPU are more than 0.7 of a host, which has one place. The price is half the part.
    assert [each.price for each in found] == [0.0, pytest.approx(12 / 125)]


def test_only_servers_of_more_than_seven_tenths_of_a_host_have_a_price() -> None:
    """11/16 are 0.69, and 12/16 are 0.75. Both are half of the requests: 12 of 23 VCPU."""
    other, large = (ServerShape.from_groups(groups(vcpus)) for vcpus in (11, 12))
    prices = [
        each.price
        for each in typical({other: 0.5, large: 0.5}, scale_of(host("a", 8).values(), 1))
    ]
    assert prices == [0.0, pytest.approx(6 / 23)]


def test_the_last_place_of_a_large_server_has_a_price() -> None:
    """Of the idle host a server of 1 VCPU takes the place for 16.

    98 of 100 servers have 1 VCPU: 0.98/16 host is lost to them. To the 2 large ones 0.02 is lost,
    and the price is half of the 32 of 130 VCPU that they ask for. With 15 VCPU free, only the
    first amount is lost.
    """
    shares = {ServerShape.from_groups(groups(1)): 0.98, ServerShape.from_groups(groups(16)): 0.02}
    usable = UsableAmounts()
    room = UsableRoom(usable, frozenset(), typical(shares, scale_of(host("a", 8).values(), 1)))
    idle, used = ((usable.number(frozenset(), ("VCPU", free)),) for free in (16, 15))
    offer: Offer = ((usable.claim({"VCPU": 1}),),), (0,)
    assert room.losses(idle, offer) == pytest.approx([0.98 / 16 + 0.02 + 16 / 130])
    assert room.losses(used, offer) == pytest.approx([0.98 / 16])


def test_a_claim_of_the_request_itself_counts() -> None:
    hosts = forest(host("a", 16, 600, 1_000), groups(1, 500), history(WHOLE))
    first = {"a": {"VCPU": 1}, "a0": {"VGPU": 500}}
    hosts.claim("a", {"VCPU": 1, "VGPU": 500}, first)
    hosts.offer("a", [{"a": {"VCPU": 1}, "a1": {"VGPU": 500}}])
    # Now the idle device is lost.
    assert hosts.best("a") == 0
    assert hosts.score("a") < 0.5


def test_without_candidates_the_best_fit_decides() -> None:
    summaries = {**host("a", 16), **host("b", 4)}
    scores = make_forest(summaries, {"VCPU": 2}, scoring=FRAGMENTATION).scores()
    assert scores["b"] > scores["a"]


def test_a_request_keeps_the_typical_servers_while_a_request_is_noted() -> None:
    """A request for a trait changes the states of all providers, also between two servers."""
    summaries = {**host("a", 16, 1_000, 600), **host("b", 16, 1_000, 1_000)}
    half, known = groups(1, 500), history(WHOLE, WHOLE, WHOLE)
    expected = forest(summaries, half, history(WHOLE, WHOLE, WHOLE)).scores()
    hosts = forest(summaries, half, known)
    fast = groups(1, 1_000, required=frozenset({"CUSTOM_A"}))
    forest(host("c", 3, 7, 11), fast, known).scores()
    assert known.room.traits == {"CUSTOM_A"}
    assert hosts.scores() == expected


def test_another_request_for_an_equal_server() -> None:
    """What a forest says after changes is what a forest made after the changes says."""
    scale = scale_of(host("a", 16, 500).values(), 1)
    before = {**host("a", 16, 1_000, 600), **host("b", 16, 1_000, 1_000)}
    after = {**host("a", 15, 1_000, 100), **host("b", 16, 1_000, 1_000)}
    half, known = groups(1, 500), history(WHOLE, WHOLE)
    hosts = forest(before, half, known)
    hosts.claim("a", {"VCPU": 1, "VGPU": 500}, {"a": {"VCPU": 1}, "a1": {"VGPU": 500}})
    must_offer = hosts.renew(scale, lambda: after)
    candidates = {
        "a": [{"a": {"VCPU": 1}, "a0": {"VGPU": 500}}],
        "b": [{"b": {"VCPU": 1}, f"b{n}": {"VGPU": 500}} for n in range(2)],
    }
    for root in candidates if must_offer else ["a"]:
        hosts.offer(root, candidates[root])
    same = history(WHOLE, WHOLE)
    forest(before, half, same)  # the first request, as known has seen it
    amounts = {"VCPU": 1, "VGPU": 500}
    fresh = make_forest(
        after, amounts, scoring=FRAGMENTATION, groups=half, history=same, scale=scale
    )
    for root, offered in candidates.items():
        fresh.offer(root, offered)
    assert hosts.scores() == fresh.scores()
