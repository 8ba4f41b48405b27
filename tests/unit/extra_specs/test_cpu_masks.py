"""Masks of dedicated and real-time vCPUs of a server with 8 vCPUs."""

import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.cpu_masks import is_realtime, mixed_mask, realtime_mask
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image

EVERY = CpuSet(range(8))
DEDICATED = "hw:cpu_dedicated_mask"
REALTIME = "hw:cpu_realtime_mask"


def flavor(**specs: str) -> Flavor:
    given = {key.replace("__", ":"): value for key, value in specs.items()}
    return Flavor(name="f", vcpus=8, memory_mb=1, extra_specs=given)


def image(mask: str) -> Image:
    return Image(name="i", properties={"hw_cpu_realtime_mask": mask})


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, False), ("yes", True), ("TRUE", True), (" on ", True), ("0", False), ("Off", False)],
)
def test_realtime(text: str | None, expected: bool) -> None:
    specs = {} if text is None else {"hw__cpu_realtime": text}
    assert is_realtime(flavor(**specs)) == expected


@pytest.mark.parametrize("text", ["", "2", "perhaps", "yes!", "\u0661"])
def test_realtime_that_is_neither_yes_nor_no(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"hw:cpu_realtime: got .*; give yes or no"):
        is_realtime(flavor(hw__cpu_realtime=text))


@pytest.mark.parametrize(
    ("specs", "given", "realtime", "expected"),
    [
        pytest.param({DEDICATED: "2,7"}, None, False, "2,7", id="a dedicated mask"),
        pytest.param({DEDICATED: "^0-5"}, None, False, "6-7", id="all but 0 to 5"),
        pytest.param({REALTIME: "^0"}, None, True, "1-7", id="a real-time mask"),
        pytest.param({REALTIME: "4"}, None, False, "4", id="a real-time mask of a server without"),
        pytest.param({REALTIME: "4"}, "5", True, "5", id="the image's goes ahead of the flavor's"),
    ],
)
def test_the_dedicated_vcpus_of_a_mixed_server(
    specs: dict[str, str], given: str | None, realtime: bool, expected: str
) -> None:
    it = Flavor(name="f", vcpus=8, memory_mb=1, extra_specs=specs)
    mask = mixed_mask(it, None if given is None else image(given), EVERY, realtime=realtime)
    assert str(mask) == expected


@pytest.mark.parametrize(
    ("specs", "given", "realtime", "message"),
    [
        pytest.param({}, None, False, "neither hw:cpu_dedicated_mask and", id="no mask"),
        pytest.param({DEDICATED: "1", REALTIME: "1"}, None, False, "both", id="both masks"),
        pytest.param({DEDICATED: "1"}, "1", False, "both", id="the image has the other mask"),
        pytest.param({DEDICATED: "1"}, None, True, "both", id="real-time is a mask of all"),
    ],
)
def test_a_mixed_server_has_a_single_mask(
    specs: dict[str, str], given: str | None, realtime: bool, message: str
) -> None:
    it = Flavor(name="f", vcpus=8, memory_mb=1, extra_specs=specs)
    with pytest.raises(ConflictingExtraSpecs, match=message):
        mixed_mask(it, None if given is None else image(given), EVERY, realtime=realtime)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("0-7", "all vCPUs 0-7 are dedicated; leave at least one vCPU shared"),
        ("^0-7", "leaves no CPU"),
        ("8", "name only vCPUs of the server"),
        ("", "leaves no CPU"),
        ("one", "'one'"),
    ],
)
def test_dedicated_masks_that_are_refused(mask: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mixed_mask(flavor(hw__cpu_dedicated_mask=mask), None, EVERY, realtime=False)


def test_without_a_mask_every_vcpu_is_realtime() -> None:
    assert realtime_mask(flavor(), None, EVERY) == EVERY
    assert realtime_mask(flavor(), Image(name="i"), EVERY) == EVERY


def test_a_realtime_mask_of_the_image_that_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^image i, property hw_cpu_realtime_mask: '9'"):
        realtime_mask(flavor(), image("9"), EVERY)
