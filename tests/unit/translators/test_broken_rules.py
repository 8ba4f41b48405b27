import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import broken_rules

SHARES, NUMA = "query_placement_for_vcpu_shares", "query_placement_for_numa"


def server(specs: dict[str, str], image: dict[str, str] | None = None) -> ServerRequest:
    flavor = Flavor(name="f", vcpus=2, memory_mb=512, extra_specs=specs)
    return ServerRequest(flavor, None if image is None else Image("i", image))


@pytest.mark.parametrize(
    ("specs", "image", "options"),
    [
        pytest.param({}, None, [], id="nothing asked"),
        pytest.param({"quota:cpu_shares_multiplier": "100"}, None, [], id="a tier"),
        pytest.param({"quota:cpu_shares": "10001"}, None, [SHARES], id="a weight over 10000"),
        pytest.param(
            {"quota:cpu_shares_multiplier": "6000"}, None, [SHARES], id="6000 x 2 is over 10000"
        ),
        pytest.param(
            {"quota:cpu_shares": "1", "quota:cpu_shares_multiplier": "1"},
            None,
            [SHARES],
            id="both keys",
        ),
        pytest.param({"hw:numa_nodes": "3"}, None, [NUMA], id="2 vCPUs on 3 nodes"),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0", "quota:cpu_shares": "7"},
            {"hw_cpu_policy": "shared"},
            [SHARES, NUMA],
            id="the matrix decides about the shared vCPUs, and about the nodes",
        ),
        pytest.param(
            {"hw:emulator_threads_policy": "isolate"}, None, [NUMA], id="isolated without pins"
        ),
    ],
)
def test_the_options_with_broken_rules(
    specs: dict[str, str], image: dict[str, str] | None, options: list[str]
) -> None:
    assert [rules.option for rules in broken_rules(lambda: server(specs, image))] == options


def test_a_flavor_that_cannot_be_read_breaks_rules_of_each_option() -> None:
    def read() -> ServerRequest:
        raise InvalidInput.of("flavor f", "vcpus 0", "give 1")

    rules = list(broken_rules(read))
    assert [(broken.option, broken.moved_with) for broken in rules] == [
        (SHARES, None),
        (NUMA, None),
    ]
    assert {str(fault) for broken in rules for fault in broken.faults} == {
        "flavor f: vcpus 0; give 1"
    }
