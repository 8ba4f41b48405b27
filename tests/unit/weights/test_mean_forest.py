"""A forest of provider trees: flattening, claims, options, explanations."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cpu_tiers.weights import BORING, LITERAL, Scoring, make_forest

Summary = Any  # as json.loads returns it
BOTH = pytest.mark.parametrize("scoring", [LITERAL, BORING], ids=["literal", "boring"])


def provider(
    root: str, resources: Mapping[str, tuple[int, int]], traits: tuple[str, ...] = ()
) -> Summary:
    """Return a summary; ``resources`` is class to (capacity, used)."""
    return {
        "resources": {
            name: {"capacity": capacity, "used": used}
            for name, (capacity, used) in resources.items()
        },
        "traits": list(traits),
        "parent_provider_uuid": None,
        "root_provider_uuid": root,
    }


@BOTH
def test_the_example_of_the_spec(scoring: Scoring) -> None:
    summaries = {"a": provider("a", {"VCPU": (8, 4)}, ("SSD", "HW_CPU_X86_AVX2"))}
    forest = make_forest(summaries, {"VCPU": 2}, {"SSD"}, scoring=scoring)
    host = forest.explain("a")
    assert host.resources == {"VCPU": 0.5}  # 1 - 2/4
    assert host.traits == {"HW_CPU_X86_AVX2": 0.0, "SSD": 1.0}
    assert (host.resource_score, host.trait_score) == (0.5, 0.5)  # 1/1 * 0.5, 1/2
    assert host.score == forest.score("a") == 0.5  # (0.5 + 0.5) / 2


@pytest.mark.parametrize(
    ("resources", "traits", "literal", "boring"),
    [
        pytest.param({}, (), 0.0, 0.5, id="neither: (0 + 0)/2, or (0 + 1)/2"),
        pytest.param({}, ("A",), 0.0, 0.25, id="no class: (0 + 0/1)/2, or (0 + 1/2)/2"),
        pytest.param({"VCPU": (4, 0)}, (), 0.25, 0.75, id="no trait: (0.5 + 0)/2, (0.5 + 1)/2"),
        pytest.param({"VCPU": (4, 4)}, (), 0.0, 0.5, id="nothing free: (0 + 0)/2, (0 + 1)/2"),
        pytest.param({"VCPU": (4, 9)}, (), 0.0, 0.5, id="overcommitted: 4 - 9 = -5 scores 0"),
        pytest.param({"VCPU": (9, 8)}, (), 0.0, 0.5, id="2 requested of 1 free scores 0"),
        pytest.param(
            {"VCPU": (4, 0), "VGPU": (8, 8)},
            (),
            0.125,  # ((0.5 + 0)/2 + 0)/2
            0.625,  # ((0.5 + 0)/2 + 1)/2
            id="a class not asked for with nothing free scores 0",
        ),
    ],
)
def test_the_score_of_a_single_host(
    resources: dict[str, tuple[int, int]],
    traits: tuple[str, ...],
    literal: float,
    boring: float,
) -> None:
    summaries = {"a": provider("a", resources, traits)}
    assert make_forest(summaries, {"VCPU": 2}).score("a") == literal
    assert make_forest(summaries, {"VCPU": 2}, scoring=BORING).score("a") == boring


@BOTH
def test_classes_and_traits_of_a_tree_are_added_up_in_any_order(scoring: Scoring) -> None:
    summaries = {
        "node 0": provider("a", {"VCPU": (8, 7)}, ("T", "U")),
        "b": provider("b", {"VCPU": (4, 0)}, ("T",)),
        "a": provider("a", {"DISK_GB": (100, 50)}, ("T",)),
        "node 1": provider("a", {"VCPU": (8, 2)}, ("U", "V", "W")),
    }
    forest = make_forest(summaries, {"VCPU": 7, "DISK_GB": 25}, {"T"}, scoring=scoring)
    host = forest.explain("a")
    assert host.resources == {"VCPU": 0.0, "DISK_GB": 0.5}  # 1 - 7/(1+6), 1 - 25/50
    assert host.traits == {"T": 1.0, "U": 0.0, "V": 0.0, "W": 0.0}
    assert host.score == 0.25  # (0.5/2 + 1/4) / 2
    assert forest.scores() == {"a": 0.25, "b": 0.5}  # b: 7 > 4, (0 + 1/1) / 2


@BOTH
def test_an_overcommitted_node_takes_from_the_free_amount_of_the_second_node(
    scoring: Scoring,
) -> None:
    summaries = {
        "node 0": provider("a", {"VCPU": (4, 6)}),
        "node 1": provider("a", {"VCPU": (8, 2)}),
    }
    host = make_forest(summaries, {"VCPU": 1}, scoring=scoring).explain("a")
    assert host.resources == {"VCPU": 0.75}  # 1 - 1/(-2 + 6)


@BOTH
def test_a_class_of_a_sharing_provider_is_not_counted(scoring: Scoring) -> None:
    summaries = {
        "a": provider("a", {"VCPU": (4, 0)}, ("T",)),
        "nfs": provider("nfs", {"DISK_GB": (40, 0)}, ("MISC_SHARES_VIA_AGGREGATE",)),
    }
    forest = make_forest(summaries, {"VCPU": 2, "DISK_GB": 10}, {"T"}, scoring=scoring)
    assert forest.explain("a").resources == {"VCPU": 0.5}  # 1 - 2/4
    assert forest.explain("nfs").resources == {"DISK_GB": 0.75}  # 1 - 10/40


@BOTH
def test_numbers_beyond_float(scoring: Scoring) -> None:
    summaries = {"a": provider("a", {"VCPU": (5 * 10**400, 10**400)}, ("T",))}
    forest = make_forest(summaries, {"VCPU": 10**400}, {"T"}, scoring=scoring)
    assert forest.score("a") == 0.875  # (1 - 1/4 + 1/1) / 2


def test_an_idle_gpu_ranks_a_host_higher_literally_and_lower_where_boring() -> None:
    summaries = {
        "plain": provider("plain", {"VCPU": (8, 0)}, ("T",)),
        "gpu": provider("gpu", {"VCPU": (8, 0), "VGPU": (4, 0)}, ("T",)),
    }
    literal = make_forest(summaries, {"VCPU": 4}, {"T"}).scores()
    assert literal == {"plain": 0.75, "gpu": 0.875}  # (0.5+1)/2, ((0.5+1)/2 + 1)/2
    boring = make_forest(summaries, {"VCPU": 4}, {"T"}, scoring=BORING).scores()
    assert boring == {"plain": 0.75, "gpu": 0.625}  # (0.5+1)/2, ((0.5+0)/2 + 1)/2


def test_hosts_with_equally_many_traits_keep_different_traits() -> None:
    summaries = {
        "a": provider("a", {}, ("T", "U")),
        "b": provider("b", {}, ("U", "V")),
        "c": provider("c", {}, ("T", "U")),
    }
    forest = make_forest(summaries, {}, {"T"})
    assert forest.scores() == {"a": 0.25, "b": 0.0, "c": 0.25}  # (0 + 1/2)/2, (0 + 0/2)/2


OPTIONS: list[Any] = [
    pytest.param({}, 0.5, id="all: ((0.5 + 1)/2 + 1/4)/2"),
    pytest.param({"only_resources": ["VCPU"]}, 0.375, id="VCPU alone: (0.5 + 1/4)/2"),
    pytest.param({"only_resources": ["FPGA"]}, 0.125, id="a class nobody has: (0 + 1/4)/2"),
    pytest.param({"only_traits": ["T", "U"]}, 0.625, id="two traits: (0.75 + 1/2)/2"),
    pytest.param({"only_traits": ["U"]}, 0.375, id="T is not considered: (0.75 + 0/1)/2"),
    pytest.param({"only_resources": {"VGPU"}, "only_traits": {"T"}}, 1.0, id="both: (1 + 1/1)/2"),
]


@pytest.mark.parametrize(("options", "score"), OPTIONS)
def test_only_classes_and_traits_named_by_the_options_are_considered(
    options: Any, score: float
) -> None:
    summaries = {"a": provider("a", {"VCPU": (8, 0), "VGPU": (4, 0)}, ("T", "U", "V", "W"))}
    forest = make_forest(summaries, {"VCPU": 4}, {"T"}, **options)
    assert forest.score("a") == forest.explain("a").score == score


def test_a_required_trait_that_is_not_considered_does_not_count_as_absent() -> None:
    summaries = {"a": provider("a", {"VCPU": (8, 0)}, ("T", "U"))}
    forest = make_forest(summaries, {"VCPU": 4}, {"T"}, scoring=BORING, only_traits=["U"])
    assert forest.score("a") == 0.5  # (0.5 + 1/(1+1)) / 2


def test_boring_scores_0_where_every_required_trait_is_absent() -> None:
    summaries = {"a": provider("a", {"VCPU": (8, 0)}, ("U",))}
    host = make_forest(summaries, {"VCPU": 4}, {"T"}, scoring=BORING).explain("a")
    assert (host.trait_score, host.traits, host.score) == (0.0, {"U": 0.0}, 0.25)


@BOTH
def test_a_later_server_sees_the_claims_of_an_earlier_server(scoring: Scoring) -> None:
    summaries = {
        root: provider(root, {"VCPU": (8, 0), "DISK_GB": (40, 0)}, ("T",)) for root in "ab"
    }
    requested = {"VCPU": 4, "DISK_GB": 10}
    forest = make_forest(summaries, requested, {"T"}, scoring=scoring)
    assert forest.scores() == {"a": 0.8125, "b": 0.8125}  # ((1-4/8 + 1-10/40)/2 + 1)/2
    forest.claim("a", requested)
    assert forest.score("b") == 0.8125
    host = forest.explain("a")
    assert host.resources == pytest.approx({"VCPU": 0.0, "DISK_GB": 2 / 3})  # 1-4/4, 1-10/30
    assert forest.score("a") == host.score == pytest.approx(2 / 3)  # ((0 + 2/3)/2 + 1)/2
    forest.claim("a", requested)
    assert forest.explain("a").resources == {"VCPU": 0.0, "DISK_GB": 0.5}  # 0 left, 1-10/20


def test_a_claim_ignores_classes_that_the_tree_lacks() -> None:
    forest = make_forest({"a": provider("a", {"VCPU": (8, 0)}, ("T",))}, {"VCPU": 2}, {"T"})
    forest.claim("a", {"VCPU": 4, "DISK_GB": 10})
    assert forest.explain("a").resources == {"VCPU": 0.5}  # 1 - 2/4


@BOTH
def test_each_host_counts_the_classes_that_the_host_has(scoring: Scoring) -> None:
    summaries = {
        "a": provider("a", {"VCPU": (8, 0)}),
        "b": provider("b", {"VCPU": (4, 0), "DISK_GB": (40, 0)}),
        "c": provider("c", {"DISK_GB": (20, 0), "VCPU": (16, 0)}),
        "d": provider("d", {}),
        "e": provider("e", {"VCPU": (4, 0)}),
    }
    forest = make_forest(summaries, {"VCPU": 2, "DISK_GB": 10, "VGPU": 1}, scoring=scoring)
    parts = {root: forest.explain(root).resources for root in summaries}
    assert parts == {
        "a": {"VCPU": 0.75},  # 1 - 2/8
        "b": {"VCPU": 0.5, "DISK_GB": 0.75},  # 1 - 2/4, 1 - 10/40
        "c": {"DISK_GB": 0.5, "VCPU": 0.875},  # 1 - 10/20, 1 - 2/16
        "d": {},
        "e": {"VCPU": 0.5},
    }
    of_traits = forest.explain("a").trait_score  # no host has a trait
    assert forest.scores() == {
        root: (part + of_traits) / 2
        for root, part in {"a": 0.75, "b": 0.625, "c": 0.6875, "d": 0.0, "e": 0.5}.items()
    }


def test_a_claim_does_not_edit_the_summaries() -> None:
    summaries = {"a": provider("a", {"VCPU": (8, 0)}, ("T",))}
    make_forest(summaries, {"VCPU": 2}, only_resources=["DISK_GB"], only_traits=["U"])
    make_forest(summaries, {"VCPU": 2}).claim("a", {"VCPU": 4})
    assert summaries == {"a": provider("a", {"VCPU": (8, 0)}, ("T",))}


def test_a_host_without_summaries_is_an_error() -> None:
    forest = make_forest({}, {"VCPU": 2})
    assert forest.scores() == {}
    for ask in (forest.score, forest.explain, lambda root: forest.claim(root, {})):
        with pytest.raises(KeyError, match="nowhere"):
            ask("nowhere")


class CountingMapping(Mapping[str, Any]):
    """Counts how often each value is read, through whichever method."""

    def __init__(self, values: Mapping[str, Any], place: str, reads: Counter[str]) -> None:
        self._place, self._reads = place, reads
        self._values = {
            key: CountingMapping(value, f"{place}/{key}", reads)
            if isinstance(value, Mapping)
            else value
            for key, value in values.items()
        }

    def __getitem__(self, key: str) -> Any:
        self._reads[f"{self._place}/{key}"] += 1
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        self._reads[f"{self._place}: its keys"] += 1
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@BOTH
def test_every_summary_and_every_field_is_read_at_most_once(scoring: Scoring) -> None:
    reads: Counter[str] = Counter()
    summaries = {
        f"{root}{node}": provider(f"{root}0", {"VCPU": (8, 1), "PCPU": (4, 0)}, ("T", "U"))
        for root in "abc"
        for node in "012"
    }
    counting = CountingMapping(summaries, "", reads)
    forest = make_forest(
        counting, {"VCPU": 2}, {"T"}, scoring=scoring, only_resources=["VCPU"], only_traits=["T"]
    )
    forest.scores()
    forest.claim("a0", {"VCPU": 2})
    forest.scores()
    assert [forest.explain(root).score for root in forest.scores()]
    assert set(reads.values()) == {1}
    assert {f"/{uuid}/{field}" for uuid in summaries for field in ("resources", "traits")} <= set(
        reads
    )


def test_the_default_is_literal() -> None:
    summaries = {"a": provider("a", {"VGPU": (4, 0)})}
    literal = make_forest(summaries, {}, scoring=LITERAL)
    assert make_forest(summaries, {}).explain("a") == literal.explain("a")
