"""The weight of a guest by the multiplier of its flavor."""

import inspect
from collections.abc import Iterator

import pytest
from lxml import etree
from nova import objects
from nova.virt.libvirt import migration

from cpu_tiers.conf import libvirt
from cpu_tiers.nova import options
from cpu_tiers.nova.compute.guest_weight import LIVE_MIGRATION, with_plain_shares
from tests.nova.computes import MULTIPLIER, PLAIN

objects.register_all()
update_quota_xml = inspect.unwrap(migration._update_quota_xml)


def flavor(vcpus: int = 2, **specs: str) -> objects.Flavor:
    extra_specs = {f"quota:{name}": value for name, value in specs.items()}
    sizes = {"memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return objects.Flavor(name="f", vcpus=vcpus, **sizes, extra_specs=extra_specs)


SWITCHES = ("report_vcpu_shares", "least_weight_without_tier")


@pytest.fixture(autouse=True)
def switches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Turn the options on that a test names; without a name both are off."""
    options.register(libvirt)
    for switch in SWITCHES:
        options.CONF.set_override(switch, switch in getattr(request, "param", ()), "libvirt")
    yield
    for switch in SWITCHES:
        options.CONF.clear_override(switch, "libvirt")


reporting = pytest.mark.parametrize("switches", [SWITCHES[:1]], indirect=True)
giving_least = pytest.mark.parametrize("switches", [SWITCHES[1:], SWITCHES], indirect=True)


SERVER = "6a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"


def shown(tier: objects.Flavor) -> objects.Flavor:
    """Return the flavor that the driver shows Nova."""
    gives_least = options.CONF.libvirt.least_weight_without_tier
    return with_plain_shares(tier, SERVER, gives_least=gives_least)


def weight(tier: objects.Flavor) -> str | None:
    """Return the weight that Nova gives a guest by the flavor that the driver shows."""
    plain: str | None = shown(tier).extra_specs.get(PLAIN)
    return plain


@pytest.mark.parametrize(
    ("vcpus", "multiplier", "expected"),
    [
        pytest.param(2, "100", "200", id="100 x 2"),
        pytest.param(3, "2.5", "8", id="2.5 x 3 = 7.5, and a half is rounded up"),
        pytest.param(1, "10000", "10000", id="the largest weight of cgroup v2"),
        pytest.param(2, "10000", None, id="10000 x 2 is above the largest weight"),
        pytest.param(1, "0", None, id="zero"),
        pytest.param(1, "-1", None, id="negative"),
        pytest.param(1, "NaN", None, id="NaN"),
        pytest.param(1, "gold", None, id="text"),
        pytest.param(1, "", None, id="empty"),
    ],
)
def test_the_weight_of_a_multiplier(
    vcpus: int, multiplier: str, expected: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert weight(flavor(vcpus, cpu_shares_multiplier=multiplier)) == expected
    assert ("The guest gets no weight" in caplog.text) == (expected is None)


def test_a_host_without_shares_leaves_plain_shares_to_nova(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for plain in (flavor(), flavor(cpu_shares="70"), flavor(cpu_shares="16384")):
        assert shown(plain) is plain
    assert not caplog.records
    assert weight(flavor(cpu_shares_multiplier="5", cpu_shares="70")) == "70"


@reporting
def test_on_a_host_with_shares_no_weight_is_without_a_claim() -> None:
    for faulty in ("0", "16384", "gold"):
        assert weight(flavor(cpu_shares=faulty)) is None
    assert weight(flavor(cpu_shares_multiplier="5", cpu_shares="70")) is None
    assert weight(flavor(cpu_shares="70")) == "70"


@giving_least
def test_the_least_weight_is_for_flavors_without_a_tier(caplog: pytest.LogCaptureFixture) -> None:
    for vcpus in (1, 64):
        assert weight(flavor(vcpus)) == "2"
        assert weight(flavor(vcpus, cpu_quota="5")) == "2"
    assert weight(flavor(cpu_shares="70")) == "70"
    assert weight(flavor(cpu_shares="1")) == "2"  # the least weight of a tier, decision D70
    assert weight(flavor(cpu_shares_multiplier="100")) == "200"  # 100 x 2
    assert not caplog.records
    for faulty in ({"cpu_shares": "16384"}, {"cpu_shares_multiplier": "gold"}):
        assert weight(flavor(2, **faulty)) == "2"
        assert "The guest gets no weight by its extra specs" in caplog.text


def test_nova_is_shown_a_flavor_with_plain_shares() -> None:
    tier = flavor(cpu_shares_multiplier="100", cpu_quota="5")
    plain = shown(tier)
    assert plain.extra_specs[PLAIN] == "200"  # 100 x 2
    assert plain.extra_specs["quota:cpu_quota"] == "5"
    assert PLAIN not in tier.extra_specs
    assert tier.extra_specs[MULTIPLIER] == "100"


class TestLiveMigration:
    def migrated(self, guest: str, tier: objects.Flavor) -> str | None:
        """Return the weight in the XML for the destination."""
        assert LIVE_MIGRATION.wrap is not None
        update = LIVE_MIGRATION.wrap(update_quota_xml)
        document = update(objects.Instance(uuid=SERVER, flavor=tier), etree.fromstring(guest))
        shares: str | None = document.findtext("cputune/shares")
        return shares

    def test_the_weight_of_a_multiplier_is_kept(self) -> None:
        guest = "<domain><cputune><shares>200</shares></cputune></domain>"
        assert self.migrated(guest, flavor(cpu_shares_multiplier="100")) == "200"

    def test_a_wrong_or_missing_weight_is_corrected(self) -> None:
        for guest in ("<domain/>", "<domain><cputune><shares>7</shares></cputune></domain>"):
            assert self.migrated(guest, flavor(cpu_shares_multiplier="100")) == "200", guest

    def test_without_a_multiplier_novas_function_decides(self) -> None:
        guest = "<domain><cputune><shares>7</shares></cputune></domain>"
        assert self.migrated(guest, flavor()) is None

    @reporting
    def test_on_a_host_with_shares_a_faulty_weight_goes(self) -> None:
        guest = "<domain><cputune><shares>16384</shares></cputune></domain>"
        faulty = flavor(cpu_shares="16384")
        assert self.migrated(guest, faulty) is None
        assert faulty.extra_specs[PLAIN] == "16384"

    @giving_least
    def test_a_guest_without_a_tier_leaves_with_the_least_weight(self) -> None:
        for guest in ("<domain/>", "<domain><cputune><shares>1024</shares></cputune></domain>"):
            assert self.migrated(guest, flavor()) == "2", guest
