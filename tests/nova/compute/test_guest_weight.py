"""The weight of a guest by the multiplier of its flavor."""

from types import SimpleNamespace

import pytest
from lxml import etree
from nova import objects

from cpu_tiers.nova.compute.guest_weight import (
    LIVE_MIGRATION,
    multiplied_shares,
    with_plain_shares,
)
from tests.nova.computes import MULTIPLIER, PLAIN

objects.register_all()


def flavor(vcpus: int = 2, **specs: str) -> objects.Flavor:
    extra_specs = {f"quota:{name}": value for name, value in specs.items()}
    sizes = {"memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return objects.Flavor(name="f", vcpus=vcpus, **sizes, extra_specs=extra_specs)


@pytest.mark.parametrize(
    ("vcpus", "multiplier", "weight"),
    [
        pytest.param(2, "100", 200, id="100 x 2"),
        pytest.param(3, "2.5", 8, id="2.5 x 3 = 7.5, and a half is rounded up"),
        pytest.param(1, "10000", 10000, id="the largest weight of cgroup v2"),
        pytest.param(2, "10000", None, id="10000 x 2 is above it"),
        pytest.param(1, "0", None, id="zero"),
        pytest.param(1, "-1", None, id="negative"),
        pytest.param(1, "NaN", None, id="NaN"),
        pytest.param(1, "gold", None, id="text"),
        pytest.param(1, "", None, id="empty"),
    ],
)
def test_multiplied_shares(
    vcpus: int, multiplier: str, weight: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    tier = flavor(vcpus, cpu_shares_multiplier=multiplier)
    assert multiplied_shares(tier) == weight
    assert ("The guest gets no weight" in caplog.text) == (weight is None)


def test_both_keys_give_no_weight_of_ours() -> None:
    assert multiplied_shares(flavor(cpu_shares_multiplier="5", cpu_shares="70")) is None


def test_a_flavor_without_a_multiplier_is_novas_business(caplog: pytest.LogCaptureFixture) -> None:
    for plain in (flavor(), flavor(cpu_shares="70")):
        assert multiplied_shares(plain) is None
        assert with_plain_shares(plain) is plain
    assert not caplog.records


def test_nova_is_shown_a_flavor_with_plain_shares() -> None:
    tier = flavor(cpu_shares_multiplier="100", cpu_quota="5")
    shown = with_plain_shares(tier)
    assert shown.extra_specs[PLAIN] == "200"  # 100 x 2
    assert shown.extra_specs["quota:cpu_quota"] == "5"
    assert PLAIN not in tier.extra_specs
    assert tier.extra_specs[MULTIPLIER] == "100"


class TestLiveMigration:
    def migrated(self, guest: str, tier: objects.Flavor) -> str | None:
        """Return the weight in the XML for the destination; Nova's function is a stand-in."""

        def without_shares(instance: object, document: etree._Element) -> etree._Element:
            for cputune in document.findall("cputune"):
                document.remove(cputune)
            return document

        assert LIVE_MIGRATION.wrap is not None
        update = LIVE_MIGRATION.wrap(without_shares)
        document = update(SimpleNamespace(flavor=tier), etree.fromstring(guest))
        weight: str | None = document.findtext("cputune/shares")
        return weight

    def test_the_weight_of_a_multiplier_is_kept(self) -> None:
        guest = "<domain><cputune><shares>200</shares></cputune></domain>"
        assert self.migrated(guest, flavor(cpu_shares_multiplier="100")) == "200"

    def test_a_wrong_weight_or_none_becomes_the_right_one(self) -> None:
        for guest in ("<domain/>", "<domain><cputune><shares>7</shares></cputune></domain>"):
            assert self.migrated(guest, flavor(cpu_shares_multiplier="100")) == "200", guest

    def test_without_a_multiplier_novas_function_decides(self) -> None:
        guest = "<domain><cputune><shares>7</shares></cputune></domain>"
        assert self.migrated(guest, flavor()) is None
