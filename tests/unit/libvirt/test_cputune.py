"""The weight of a domain that is there already."""

import pytest
from lxml import etree

from cpu_tiers.libvirt.cputune import set_shares


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("<domain/>", id="no cputune"),
        pytest.param("<domain><cputune/></domain>", id="no shares"),
        pytest.param("<domain><cputune><shares>2048</shares></cputune></domain>", id="others"),
    ],
)
def test_a_domain_gets_its_weight(given: str) -> None:
    domain = etree.fromstring(given)
    set_shares(domain, 200)
    expected = "<domain><cputune><shares>200</shares></cputune></domain>"
    assert etree.tostring(domain, encoding="unicode") == expected


def test_other_tuning_stays() -> None:
    domain = etree.fromstring("<domain><cputune><quota>5</quota></cputune></domain>")
    set_shares(domain, 200)
    assert domain.findtext("cputune/quota") == "5"
