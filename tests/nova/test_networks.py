"""The fake Neutron of our tests, where it is to do as Neutron and Nova's fake does not."""

from typing import Any

import pytest
from neutronclient.common.exceptions import NeutronClientException

from tests.nova.networks import PORT_IDS, Neutron


@pytest.fixture
def neutron() -> Neutron:
    """Return a Neutron whose first port has moved from host one to host two."""
    neutron = Neutron(None)
    for host in ("one", "two"):
        move(neutron, host)
    return neutron


def move(neutron: Neutron, host: str) -> None:
    profile = {"pci_slot": f"of {host}"}
    body = {"port": {"binding:host_id": host, "binding:profile": profile}}
    neutron.update_port(PORT_IDS[0], body)


def binding(neutron: Neutron, host: str) -> Any:
    return neutron.show_port_binding(PORT_IDS[0], host)["binding"]


def test_the_former_host_keeps_no_binding(neutron: Neutron) -> None:
    """An update of a port changes the host of its active binding (Neutron's ML2 plug-in)."""
    with pytest.raises(NeutronClientException):
        binding(neutron, "one")
    moved = binding(neutron, "two")
    assert (moved["status"], moved["profile"]) == ("ACTIVE", {"pci_slot": "of two"})


def test_an_inactive_binding_stays(neutron: Neutron) -> None:
    """A live migration makes such a binding in advance."""
    neutron.create_port_binding(PORT_IDS[0], {"binding": {"host": "three"}})
    move(neutron, "one")
    assert binding(neutron, "three")["status"] == "INACTIVE"
    assert binding(neutron, "one")["status"] == "ACTIVE"
