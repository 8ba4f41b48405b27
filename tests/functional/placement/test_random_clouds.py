"""Both forms of the queries for NUMA nodes on random clouds, compared with a brute force."""

from collections import Counter

from cpu_tiers.tools.placement.client import PlacementClient
from tests import made_once
from tests.draws import clouds, repeatable
from tests.random_clouds.providers import CARD, NAMES
from tests.random_clouds.queries import check_forms


def test_no_placement_is_missed_and_none_is_infeasible(embedded: PlacementClient) -> None:
    embedded.ensure_names(classes=[CARD, "CUSTOM_NUMA_SERVER"], traits=NAMES)
    empty = made_once.copy_of_placement()
    counts: Counter[str] = Counter()
    for number in clouds(100):
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            counts += check_forms(embedded, seed)
    assert counts["placements"] > counts["hosts"]  # or there was nothing to compare
