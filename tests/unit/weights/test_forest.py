"""What a forest does for every scoring, seen by a forest whose scores are told."""

from cpu_tiers.weights.forest import NO_ALLOCATIONS, Forest, HostScore
from cpu_tiers.weights.scale import Scale


class Told(Forest):
    def __init__(self, **told: float) -> None:
        self.told, self.roots = told, told.keys()

    def score(self, root: str) -> float:
        return self.told[root]

    def explain(self, root: str) -> HostScore:
        return HostScore(self.told[root], 0.0, 0.0, {}, {})

    def claim(self, root: str, resources: object, allocations: object = NO_ALLOCATIONS) -> None:
        self.told[root] = 0.0


def test_the_scores_are_those_of_the_hosts_in_the_order_that_is_asked_for() -> None:
    forest = Told(a=0.5, b=0.25, c=1.0)
    assert forest.scores() == {"a": 0.5, "b": 0.25, "c": 1.0}
    assert forest.scores_of(["c", "a"]) == [1.0, 0.5]


def test_a_forest_to_which_candidates_are_equal_takes_the_first() -> None:
    forest = Told(a=0.5)
    forest.offer("a", [{"one": {"VCPU": 1}}, {"two": {"VCPU": 1}}])
    assert forest.best("a") == 0
    assert not forest.renew(Scale(units={}, weights={}), dict)
