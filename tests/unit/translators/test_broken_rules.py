from collections.abc import Mapping

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import API, NUMA, SHARES, Move, broken_rules

STORED = Move(20, by_stored_cpus=True)


def server(specs: Mapping[str, str], image: Mapping[str, str] | None = None) -> ServerRequest:
    flavor = Flavor(name="f", vcpus=2, memory_mb=512, extra_specs=specs)
    return ServerRequest(flavor, None if image is None else Image("i", image))


MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}


@pytest.mark.parametrize(
    ("specs", "image", "moves"),
    [
        pytest.param({"quota:cpu_shares": "10001"}, None, {SHARES: Move(0)}, id="over 10000"),
        pytest.param(
            {"quota:cpu_shares_multiplier": "6000"}, None, {SHARES: Move(0)}, id="6000 x 2"
        ),
        pytest.param(
            {"quota:cpu_shares": "1", "quota:cpu_shares_multiplier": "1"},
            None,
            {SHARES: Move(0)},
            id="both keys",
        ),
        pytest.param(
            {"hw:numa_nodes": "2", "resources:VCPU": "1", "quota:cpu_shares_multiplier": "10"},
            None,
            {NUMA: Move(None)},
            id="an amount of 1 VCPU beside nodes of 2",
        ),
        pytest.param(
            {**MIXED, "quota:cpu_shares_multiplier": "10"},
            {"hw_cpu_policy": "shared"},
            {SHARES: STORED, NUMA: STORED._replace(shares=None)},
            id="the matrix decides about the shared vCPUs, and about the nodes",
        ),
        pytest.param(
            {"hw:emulator_threads_policy": "isolate"},
            None,
            {NUMA: Move(None, by_stored_cpus=True)},
            id="isolated emulator threads without dedicated vCPUs",
        ),
    ],
)
def test_a_faulty_server_is_moved_and_a_new_faulty_server_is_refused(
    specs: Mapping[str, str], image: Mapping[str, str] | None, moves: Mapping[str, Move]
) -> None:
    rules = broken_rules(lambda: server(specs, image))
    assert rules is not None
    assert rules.moves == moves
    assert set(rules.refused_by) - {API} == moves.keys()


def test_a_tier_breaks_no_rule() -> None:
    assert broken_rules(lambda: server({"quota:cpu_shares_multiplier": "100"})) is None


def test_the_api_refuses_the_faults_that_the_scheduler_refuses_by_an_option() -> None:
    rules = broken_rules(lambda: server({"hw:cpu_policy": "x", "quota:cpu_shares": "0"}))
    assert rules is not None
    assert [fault.where for fault in rules.faults] == [
        "flavor f, extra spec hw:cpu_policy",
        "flavor f, extra spec quota:cpu_shares",
    ]
    assert rules.refused_by == (API, SHARES, NUMA)


def test_a_flavor_that_cannot_be_read_cannot_be_moved() -> None:
    def read() -> ServerRequest:
        raise InvalidInput.of("flavor f", "vcpus 0", "give 1")

    rules = broken_rules(read)
    assert rules is not None
    assert [str(fault) for fault in rules.faults] == ["flavor f: vcpus 0; give 1"]
    assert rules.moves == {SHARES: None, NUMA: None}
