"""Words of a flavor and of an image with the same meaning."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.cpu_policies import choices
from cpu_tiers.model.flavor import Flavor, Image

WORDS = ("red", "green")


def read(of_flavor: str | None, of_image: str | None) -> tuple[str | None, str | None]:
    specs = {} if of_flavor is None else {"hw:color": of_flavor}
    image = None if of_image is None else Image(name="i", properties={"hw_color": of_image})
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=specs)
    return choices(flavor, "hw:color", image, "hw_color", WORDS)


@pytest.mark.parametrize(
    "given", [(None, None), ("red", None), (None, "green"), ("red", "green")], ids=str
)
def test_words_of_the_list(given: tuple[str | None, str | None]) -> None:
    assert read(*given) == given


def test_both_faults_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read("blue", "")
    assert [str(fault) for fault in caught.value.faults] == [
        "flavor f, extra spec hw:color: got 'blue'; give one of red, green",
        "image i, property hw_color: got ''; give one of red, green",
    ]
