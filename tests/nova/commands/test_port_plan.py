"""``cpu-tiers allocation heal`` for ports, beside Nova's services and its fake Neutron.

The host has 3000 kilobit per second. Servers boot while their ports ask for
nothing; then a rule makes them ask.
"""

from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import context, exception, objects
from nova.network import neutron
from nova.tests.fixtures import NeutronFixture
from nova.tests.fixtures.neutron import neutron_client_exc

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.tools.accounting.port_bindings import PortBinding
from cpu_tiers.tools.nova.port_healing import PortGone, PortNotRecorded
from cpu_tiers.tools.nova.port_plan import NeutronUnavailable, Ports
from cpu_tiers.tools.placement.client import PlacementClient
from tests.nova.command_line import CommandLine
from tests.nova.computes import SHARES, Computes
from tests.nova.kinds import STARTS_TO_REPORT
from tests.nova.networks import (
    AGENT,
    BRIDGE,
    EGRESS,
    PACKETS,
    PORT_IDS,
    Neutron,
    add_devices,
    bandwidth,
    held_of_devices,
    placement_of,
    with_packets,
)

P1, P2, P3, *_ = PORT_IDS
ONE = BRIDGE.format("one")


class Heals(Computes):
    kind = STARTS_TO_REPORT

    def setUp(self) -> None:
        super().setUp()
        self.commands = CommandLine(self)
        self.neutron = self.useFixture(Neutron(self))
        self.client = placement_of(self)
        self.start_host("one")
        add_devices(self.client, "one")
        self.device = self.client.find_provider(ONE)

    def boot_with(self, *ports: str, flavor: str | None = None) -> str:
        """Boot a server; return its uuid."""
        server: str = self._create_server(
            flavor_id=flavor or self.flavor(f"of {ports}"),
            networks=[{"port": port} for port in ports],
        )["id"]
        return server

    def heal(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Return what is added, by port."""
        self.said = self.commands.run("allocation", "heal", *arguments, status=status)
        return {row["port"]: row["adds"] for row in self.said.rows}

    def devices_of(self, server: str) -> dict[str, dict[str, int]]:
        return held_of_devices(self.client, server)


class TestHeal(Heals):
    def test_a_plan_writes_nothing_and_a_second_run_finds_nothing(self) -> None:
        server, other = self.boot_with(P1, P2), self.boot_with(P3)
        for port, amount in ((P1, 1000), (P2, 500), (P3, 700)):
            self.neutron.ask(port, bandwidth(amount))
        self.neutron.set_profile(P1, {"of": "somebody"})
        expected = {P1: {EGRESS: 1000}, P2: {EGRESS: 500}, P3: {EGRESS: 700}}
        assert self.heal("--plan") == expected
        assert self.devices_of(server) == {}
        assert self.neutron.profile(P2) == {}
        assert self.heal("--apply") == expected
        assert {tuple(row["providers"]) for row in self.said.rows} == {(ONE,)}
        assert self.devices_of(server) == {ONE: {EGRESS: 1500}}
        assert self.devices_of(other) == {ONE: {EGRESS: 700}}
        assert self.device is not None
        assert self.neutron.profile(P1) == {"of": "somebody", "allocation": self.device.uuid}
        with (
            mock.patch.object(PlacementClient, "set_consumers") as written,
            mock.patch.object(Neutron, "update_port") as updated,
        ):
            assert self.heal("--apply") == {}
        written.assert_not_called()
        updated.assert_not_called()
        assert "ports with a resource request: 3" in self.said.error
        self._detach_interface({"id": server}, P1)  # and Nova finds its way
        assert self.devices_of(server) == {ONE: {EGRESS: 500}}

    def test_two_groups(self) -> None:
        server = self.boot_with(P1)
        self.neutron.groups = True
        self.neutron.ask(P1, with_packets(1000, 7))
        assert self.heal("--apply") == {P1: {EGRESS: 1000, PACKETS: 7}}
        assert self.devices_of(server) == {ONE: {EGRESS: 1000}, AGENT.format("one"): {PACKETS: 7}}
        assert self.neutron.profile(P1)["allocation"].keys() == {"bw", "pps"}

    def test_a_server_that_must_move_is_named_and_the_remaining_ports_are_healed(self) -> None:
        moves, stays = self.boot_with(P1, P2), self.boot_with(P3)
        for port, amount in ((P1, 100), (P2, 3001), (P3, 700)):
            self.neutron.ask(port, bandwidth(amount))
        self.heal("--plan", status=1)
        self.heal("--apply", status=1)
        fits = {row["port"]: row["fits"] for row in self.said.rows}
        assert fits == {P1: False, P2: False, P3: True}
        assert f"port {P2} of server " in self.said.error
        assert "migrate the server" in self.said.error
        assert self.devices_of(moves) == {}
        assert self.devices_of(stays) == {ONE: {EGRESS: 700}}

    def test_two_servers_with_room_for_either_server_only(self) -> None:
        servers = self.boot_with(P1), self.boot_with(P2)
        for port in (P1, P2):
            self.neutron.ask(port, bandwidth(2000))
        for mode in ("--plan", "--apply"):
            self.heal(mode, status=1)
            assert sorted(row["fits"] for row in self.said.rows) == [False, True]
        assert sorted(map(len, map(self.devices_of, servers))) == [0, 1]

    def test_beside_shares(self) -> None:
        server = self.boot_with(P1, flavor=self.tier("gold", "100"))
        self.neutron.ask(P1, bandwidth(10))
        self.placement.delete(f"/allocations/{server}")
        self.heal("--plan", status=1)
        assert "holds no allocation at all" in self.said.error
        self.provider_yaml("$COMPUTE_NODE", 640)
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.restart("one")
        for mode in ("--plan", "--apply"):
            adds = self.heal(mode)
            assert adds == {"": {"VCPU": 1, "MEMORY_MB": 512, SHARES: 100}, P1: {EGRESS: 10}}
        assert self.devices_of(server) == {ONE: {EGRESS: 10}}
        root = self.client.consumer(server).allocations[self.compute_rp_uuids["one"]]
        assert root[SHARES] == 100

    def test_a_server_in_the_middle_of_something(self) -> None:
        server = self.boot_with(P1)
        self.neutron.ask(P1, bandwidth(10))
        found = objects.Instance.get_by_uuid(context.get_admin_context(), server)
        found.task_state = "rebuilding"
        found.save()
        assert self.heal("--apply") == {}

    def test_a_single_server_of_two(self) -> None:
        server, other = self.boot_with(P1), self.boot_with(P2)
        for port in (P1, P2):
            self.neutron.ask(port, bandwidth(10))
        assert self.heal("--apply", "--server", server) == {P1: {EGRESS: 10}}
        assert self.devices_of(other) == {}


class TestNeutron(Heals):
    def refusing(self, error: Exception) -> Any:
        return mock.patch.object(Neutron, "update_port", side_effect=error)

    def test_neutron_has_no_port_with_a_resource_request(self) -> None:
        self.boot_with(P1)
        assert self.heal("--plan") == {}
        assert "ports with a resource request: 0" in self.said.error

    def test_neutron_is_down(self) -> None:
        away = ConnectFailure("connection refused")
        with mock.patch.object(NeutronFixture, "list_ports", side_effect=away):
            assert self.heal("--apply", status=1) == {}
            assert self.said.error.count("\n") == 1
            assert "Neutron cannot be asked: connection refused" in self.said.error
            assert self.heal("--apply", "--skip-ports") == {}

    def test_neutron_fails_after_the_write_to_placement(self) -> None:
        server = self.boot_with(P1)
        self.neutron.ask(P1, bandwidth(3000))  # all that there is
        with self.refusing(neutron_client_exc.ServiceUnavailable("in vain")):
            self.heal("--apply", status=1)
        assert "Placement has its part, but Neutron did not take note: in vain" in self.said.error
        assert "run the command again" in self.said.error
        assert self.devices_of(server) == {ONE: {EGRESS: 3000}}
        assert self.heal("--apply") == {P1: {}}
        assert self.devices_of(server) == {ONE: {EGRESS: 3000}}
        assert "allocation" in self.neutron.profile(P1)

    def test_a_port_that_vanishes(self) -> None:
        server = self.boot_with(P1)
        self.neutron.ask(P1, bandwidth(10))
        with self.refusing(neutron_client_exc.PortNotFoundClient()):
            self.heal("--apply", status=1)
        assert "it is gone by now; what it was given is freed" in self.said.error
        assert self.devices_of(server) == {}

    def test_profiles_that_cannot_be_read(self) -> None:
        server = self.boot_with(P1)
        self.neutron.ask(P1, bandwidth(10))
        for profile in ("garbage", {"allocation": ["x"]}, {"allocation": "of-no-host"}):
            self.neutron.set_profile(P1, profile)
            self.heal("--apply", status=1)
            told = [line for line in self.said.error.splitlines() if line.startswith("port ")]
            assert [line.split(" of ")[0] for line in told] == [f"port {P1}"]
            assert self.neutron._ports[P1]["binding:profile"] == profile
        assert self.devices_of(server) == {}


REQUEST = {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 10}, "required": []}
ASKS = {"id": "a", "device_id": "s1", "resource_request": REQUEST, "binding:profile": {"x": 1}}
BODIES = [
    ASKS,
    {"id": "b", "device_id": "s1", "resource_request": None, "binding:profile": {}},
    {"id": "c", "device_id": "s2", "resource_request": REQUEST, "binding:profile": "odd"},
    {"id": "d", "device_id": "s1", "resource_request": REQUEST, "binding:profile": None},
]


@pytest.fixture
def client() -> Any:
    with mock.patch.object(neutron, "get_client") as get_client:
        get_client.return_value.list_ports.return_value = {"ports": BODIES}
        yield get_client.return_value


def test_ports_with_a_resource_request_by_server(client: Any) -> None:
    ports = Ports(None).of_host("c1")
    assert {server: [port.id for port in of] for server, of in ports.items()} == {
        "s1": ["a", "d"],  # b requests nothing
        "s2": ["c"],
    }
    assert client.list_ports.call_args.kwargs["binding:host_id"] == "c1"
    assert ports["s1"][1].binding_profile == {}
    assert ports["s2"][0].binding_profile == {"allocation": "odd"}  # where it is refused
    assert Ports(None).of_server("s3") == ()


def binding(client: Any) -> PortBinding:
    port = Ports(None).of_server("s1")[0]
    return PortBinding(port=port, providers={"a": ProviderId("nic")})


def test_a_profile_keeps_the_keys_beside_the_allocation(client: Any) -> None:
    Ports(None).record(binding(client))
    body = {"port": {"binding:profile": {"x": 1, "allocation": "nic"}}}
    client.update_port.assert_called_once_with("a", body)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(neutron.neutron_client_exc.PortNotFoundClient(), PortGone, id="404"),
        pytest.param(neutron.neutron_client_exc.Conflict(), PortNotRecorded, id="409"),
        pytest.param(exception.Forbidden(), PortNotRecorded, id="Nova's own error"),
    ],
)
def test_a_profile_that_is_not_written(client: Any, error: Exception, kind: type) -> None:
    client.update_port.side_effect = error
    with pytest.raises(kind):
        Ports(None).record(binding(client))


def test_a_neutron_that_does_not_answer(client: Any) -> None:
    client.list_ports.side_effect = neutron.neutron_client_exc.ConnectionFailed(reason="refused")
    with pytest.raises(NeutronUnavailable, match=r"check \[neutron\] in nova.conf"):
        Ports(None).of_host("c1")
