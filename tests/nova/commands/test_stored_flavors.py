"""Embedded flavors as Nova writes them, and texts that are not. ``test_flavor_findings`` reads
rows of real databases."""

import json

import pytest
from nova import context, objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.nova.stored_flavors import embedded_flavor
from tests.nova.stored_rows import make_flavor


def text(specs: dict[str, str], vcpus: int = 2) -> str:
    """Return the text that Nova's Instance.create writes to instance_extra."""
    objects.register_all()
    flavor = make_flavor(context.get_admin_context(), "gold", specs, vcpus)
    return json.dumps({"cur": flavor.obj_to_primitive(), "old": None, "new": None})


def test_the_text_of_nova() -> None:
    specs = {"quota:cpu_shares": "7"}
    expected = Flavor(name="gold", vcpus=2, memory_mb=512, root_gb=1, extra_specs=specs)
    assert embedded_flavor(text(specs)) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", r"embedded flavor: Nova's database has '' \(JSONDecodeError\); resize the server"),
        ("{}", r"has '\{\}' \(KeyError\)"),
        ('{"cur": null}', r"\(TypeError\)"),
        (text({}, vcpus=0), "flavor gold, vcpus: got 0; give a whole number from 1"),
    ],
)
def test_a_text_that_is_no_flavor(given: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        embedded_flavor(given)
