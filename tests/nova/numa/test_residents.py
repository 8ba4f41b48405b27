"""Whose the allocations of a host are, and where their guests run, beside Nova's services."""

from nova import context, objects

from cpu_tiers.accounting.holdings import ConsumerId, ProviderId, ProviderName
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.numa.residents import find_residents
from tests.nova.numa.moves import PINNED, Moves


class TestElsewhere(Moves):
    """A server holds the host that it was evacuated from while that was down."""

    def test_a_server_is_not_divided_by_the_topology_on_another_host(self) -> None:
        one = self.start_host("one")
        self.start_host("two")
        large = {**PINNED, "hw:mem_page_size": "large"}
        server = self.boot_on("one", self.flavor("large", large, vcpus=2))
        self.go_down("one")
        self._evacuate_server({"id": server}, expected_host="two", expected_state="ACTIVE")
        node = ComputeNode(
            context=context.get_admin_context(),
            host="one",
            name=ProviderName("one"),
            uuid=ProviderId(one),
        )
        self.check(node, server)
        # On its way between others, the new one with other pins
        found = objects.Instance.get_by_uuid(node.context, server, ["numa_topology"])
        compute = objects.ComputeNode.get_by_host_and_nodename(node.context, "two", "two")
        move = objects.Migration(
            node.context,
            instance_uuid=server,
            migration_type="live-migration",
            status="running",
            source_compute="two",
            source_node="two",
            dest_compute="three",
            dest_node="three",
            dest_compute_id=compute.id,
        )
        move.create()
        found.migration_context = objects.MigrationContext(
            node.context,
            instance_uuid=server,
            migration_id=move.id,
            new_numa_topology=found.numa_topology,
            old_numa_topology=found.numa_topology,
        )
        found.save()
        self.check(node, server)

    def check(self, node: ComputeNode, server: str) -> None:
        (resident,) = find_residents(node, [ConsumerId(server)]).values()
        assert resident.pinning is None
        assert resident.topology is not None
        assert resident.topology.page_size == "large"  # not what it was given on the other host
        goes_to = self.commands.goes_to(host=node.name)[server]
        assert sorted(goes_to.values(), key=str) == [{"MEMORY_MB": 512}, {"PCPU": 2}]
        assert any(name.endswith("_PAGES_2048") for name in goes_to)
