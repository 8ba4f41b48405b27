"""The pair of extra specs of stock Nova."""

from collections.abc import Mapping

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.tools.tiers.pair import pair_faults, pair_of

MULTIPLIER = "quota:cpu_shares_multiplier"
WEIGHT = "quota:cpu_shares"
AMOUNT = "resources:CUSTOM_VCPU_SHARES"
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-2"}


def flavor(specs: Mapping[str, str], vcpus: int = 4) -> Flavor:
    return Flavor(name="f", vcpus=vcpus, memory_mb=512, extra_specs=dict(specs))


@pytest.mark.parametrize(
    ("specs", "properties", "remove"),
    [
        pytest.param(
            {MULTIPLIER: "25"}, {WEIGHT: "100", AMOUNT: "100"}, (MULTIPLIER,), id="25 x 4 vCPUs"
        ),
        pytest.param(
            {MULTIPLIER: "0.625"},
            {WEIGHT: "3", AMOUNT: "3"},
            (MULTIPLIER,),
            id="2.5 rounded up",
        ),
        pytest.param(
            {MULTIPLIER: "0.25"},
            {WEIGHT: "2", AMOUNT: "2"},
            (MULTIPLIER,),
            id="libvirt refuses the weight 1, and a guest of weight 2 requests 2",
        ),
        pytest.param({WEIGHT: "70"}, {WEIGHT: "70", AMOUNT: "70"}, (), id="a weight gets a claim"),
        pytest.param(
            {WEIGHT: "70", AMOUNT: "50"}, {WEIGHT: "70", AMOUNT: "70"}, (), id="the weight decides"
        ),
        pytest.param(
            {MULTIPLIER: "10", AMOUNT: "5"},
            {WEIGHT: "40", AMOUNT: "40"},
            (MULTIPLIER,),
            id="a claim beside a multiplier is set anew",
        ),
        pytest.param(
            {WEIGHT: "70", "resources1:CUSTOM_VCPU_SHARES": "70"},
            {WEIGHT: "70", AMOUNT: "70"},
            ("resources1:CUSTOM_VCPU_SHARES",),
            id="claims of other groups are removed",
        ),
        pytest.param(
            {MULTIPLIER: "25", AMOUNT: "100", "hw:cpu_policy": "dedicated"},
            {WEIGHT: "100"},
            (MULTIPLIER, AMOUNT),
            id="dedicated vCPUs claim none",
        ),
        pytest.param(
            {WEIGHT: "70", **MIXED}, {WEIGHT: "70", AMOUNT: "70"}, (), id="a mixed flavor's weight"
        ),
    ],
)
def test_the_pair(
    specs: Mapping[str, str], properties: Mapping[str, str], remove: tuple[str, ...]
) -> None:
    pair = pair_of(flavor(specs))
    assert pair is not None
    assert (pair.properties, pair.remove) == (properties, remove)
    assert not pair.is_complete_in(flavor(specs))
    kept = {key: value for key, value in specs.items() if key not in remove}
    paired = flavor({**kept, **properties})
    again = pair_of(paired)
    assert again is not None
    assert again.is_complete_in(paired)
    assert pair_faults(paired, query_vcpu_shares=False) == ()


def test_no_tier() -> None:
    assert pair_of(flavor({"hw:cpu_policy": "dedicated"})) is None


@pytest.mark.parametrize(
    ("specs", "given"),
    [
        pytest.param(
            {MULTIPLIER: "100", **MIXED},
            "the weight counts 4 vCPUs, the request only 1 shared vCPUs",
            id="100 x 4 is no claim of one shared vCPU",
        ),
        pytest.param(
            {AMOUNT: "5"},
            "shares are requested, and neither quota:cpu_shares nor quota:cpu_shares_multiplier",
            id="a claim says nothing about the weight",
        ),
        pytest.param({MULTIPLIER: "1", WEIGHT: "4"}, "both are set", id="two weights"),
        pytest.param({MULTIPLIER: "gold"}, "got 'gold'", id="no number"),
        pytest.param({MULTIPLIER: "2501"}, "a weight of 10004", id="too heavy: 2501 x 4"),
    ],
)
def test_no_pair(specs: Mapping[str, str], given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        pair_of(flavor(specs))
    assert given in str(caught.value)


@pytest.mark.parametrize(
    ("specs", "requested", "given"),
    [
        pytest.param(
            {WEIGHT: "200", AMOUNT: "100"},
            (True, True),
            "the guest weighs 200, and the server requests 100 shares",
            id="a weight that differs",
        ),
        pytest.param(
            {WEIGHT: "200", "resources1:CUSTOM_VCPU_SHARES": "100", AMOUNT: "100"},
            (False, False),
            "",
            id="two groups that add up to the weight",
        ),
        pytest.param(
            {WEIGHT: "200", AMOUNT: "200", "hw:cpu_policy": "dedicated"},
            (True, True),
            "the guest weighs 200, and the server requests 200 shares",
            id="dedicated vCPUs claim none",
        ),
        pytest.param(
            {AMOUNT: "100"},
            (True, True),
            "100 shares are requested, and the guest gets no weight",
            id="shares without a weight",
        ),
        pytest.param(
            {WEIGHT: "200"},
            (True, False),
            "the guest weighs 200, and the server requests no shares",
            id="a weight without shares, unless nova-scheduler claims them",
        ),
        pytest.param(
            {WEIGHT: "200", "hw:cpu_policy": "dedicated"},
            (False, False),
            "",
            id="a weight of dedicated vCPUs",
        ),
        pytest.param(
            {MULTIPLIER: "50", AMOUNT: "200"},
            (True, True),
            "both are set ('50' and 200)",
            id="a claim beside a multiplier",
        ),
        pytest.param({MULTIPLIER: "50"}, (False, False), "", id="the spec's own extra spec"),
        pytest.param({MULTIPLIER: "x", AMOUNT: "200"}, (False, False), "", id="another fault"),
    ],
)
def test_faults(specs: Mapping[str, str], requested: tuple[bool, bool], given: str) -> None:
    """The faults without and with ``query_placement_for_vcpu_shares``."""
    for on, is_fault in zip((False, True), requested, strict=True):
        faults = pair_faults(flavor(specs), query_vcpu_shares=on)
        assert [fault.given for fault in faults] == [given] * is_fault


@pytest.mark.parametrize(
    ("specs", "step", "allowed"),
    [
        pytest.param({MULTIPLIER: "50"}, Step.DRIVER, None, id="a multiplier, step 3"),
        pytest.param(
            {MULTIPLIER: "50"},
            Step.NOVAS_DRIVER,
            "run cpu-tiers flavor pair --flavor f | sh, and resize",
            id="a multiplier, step 1",
        ),
        pytest.param(
            {MULTIPLIER: "50"},
            Step.WEIGHER,
            "run cpu-tiers flavor pair --flavor f | sh, and resize",
            id="a multiplier, step 2",
        ),
        pytest.param(
            {MULTIPLIER: "50", AMOUNT: "200"},
            Step.NOVAS_DRIVER,
            f"Nova's own driver knows no multiplier: replace the multiplier by {WEIGHT}",
            id="a multiplier and a claim, step 1",
        ),
        pytest.param(
            {MULTIPLIER: "50", AMOUNT: "200"},
            Step.DRIVER,
            f"the multiplier is the request, too: remove {AMOUNT}",
            id="a multiplier and a claim, step 3",
        ),
        pytest.param(
            {WEIGHT: "200"},
            Step.NOVAS_DRIVER,
            f"set {AMOUNT} to 200",
            id="a weight without a claim, step 1: no option of ours",
        ),
        pytest.param(
            {WEIGHT: "200"},
            Step.WEIGHER,
            f"set {AMOUNT} to 200, or set [filter_scheduler] query_placement_for_vcpu_shares",
            id="a weight without a claim, step 2",
        ),
    ],
)
def test_a_remedy_works_on_the_step(
    specs: Mapping[str, str], step: Step, allowed: str | None
) -> None:
    faults = pair_faults(
        flavor(specs)._replace(name="f"), query_vcpu_shares=step.requests_shares, step=step
    )
    assert [fault.allowed[: len(allowed or "")] for fault in faults] == [allowed] * bool(allowed)
