"""The host that a simulation chooses, compared with nova-scheduler on the same cloud.

Servers arrive and depart. nova-scheduler asks a real Placement for candidates and claims there;
the cloud in memory gets the same claims.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import json
import random
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import oslo_messaging
import pytest
from nova import context, exception, objects
from nova.scheduler import host_manager
from nova.virt import hardware
from oslo_utils import uuidutils

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.numa import NODE_TRAIT, count_traits, page_traits
from cpu_tiers.nova.scheduler import typical_servers
from cpu_tiers.tools.cloud_model import Allocations, CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS, HostStates
from cpu_tiers.tools.room.server_queries import Request, server_queries
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.translators import ServerRequest, translate
from cpu_tiers.translators.numa import read_form
from cpu_tiers.weights.cost.gradient import History
from tests import made_once
from tests.draws import SEED, in_turn
from tests.nova.scheduler.random_checks import Empty, placement
from tests.nova.scheduler.random_scheduler import scheduler
from tests.random_clouds.providers import CARD
from tests.random_clouds.states import write_state

SERVERS = 40
SPECS: Mapping[str, tuple[int, int, int, dict[str, str]]] = {
    "small": (1, 2, 1, {}),
    "large": (6, 8, 1, {}),
    "card": (2, 4, 0, {f"resources_A:{CARD}": "1"}),
    "part": (1, 2, 0, {f"resources_A:{CARD}": "2", "trait_A:CUSTOM_PHYSNET_FAST": "required"}),
    "cards": (2, 2, 1, {"group_policy": "isolate"} | {f"resources_{n}:{CARD}": "3" for n in "AB"}),
    "node": (2, 4, 0, {"hw:numa_nodes": "1"}),
    "nodes": (4, 4, 1, {"hw:numa_nodes": "2"}),
    "pinned": (2, 2, 0, {"hw:cpu_policy": "dedicated"}),
    "pinned nodes": (4, 2, 0, {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}),
}


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


@pytest.fixture(scope="module")
def empty() -> Iterator[Empty]:
    with placement() as found:
        yield found


def draw_states(rng: random.Random) -> list[CloudProvider]:
    """Return flat hosts with cards, and hosts that report NUMA nodes; some have dedicated CPUs.

    A flat host with dedicated CPUs has no others: nova-scheduler would leave its candidates for
    dedicated CPUs of VCPU to the filters.

    There is no pool of disks: Placement leaves out candidates of hosts whose unsuffixed group only
    sharing providers serve (``docs/reference/simulated-placement.rst``).
    """
    states = []
    for number in range(9):
        name = f"cn{rng.getrandbits(32):08x}-{number}"
        cpus, memory = rng.choice([8, 12, 16]), rng.choice([16, 24, 32])
        if number % 3 == 2:
            root = provider(
                rng, name, None, {"DISK_GB": 20, "CUSTOM_NUMA_SERVER": 99}, *count_traits(2)
            )
            of_node = {"VCPU": cpus // 2, **({"PCPU": 4} if number % 2 else {})}
            states += [root, *nodes(rng, root, of_node, memory // 2)]
            continue
        kind = "PCPU" if number == 1 else "VCPU"
        root = provider(rng, name, None, {kind: cpus, "MEMORY_MB": memory, "DISK_GB": 20})
        states.append(root)
        for card in range(rng.choice([0, 1, 3])):
            traits = rng.choice([[], ["CUSTOM_PHYSNET_FAST"]])
            states.append(provider(rng, f"{name}-{card}", root.uuid, {CARD: 4}, *traits))
    return states


def nodes(
    rng: random.Random, root: CloudProvider, amounts: Mapping[str, int], memory: int
) -> Iterator[CloudProvider]:
    for number in range(2):
        name = f"{root.name}_NUMA{number}"
        traits = frozenset({NODE_TRAIT, f"CUSTOM_NUMA_CELL_{number}"})
        node = provider(rng, name, root.uuid, amounts, *traits)
        yield node
        traits = page_traits(4, smallest=True)
        yield provider(rng, f"{name}_PAGES_4", node.uuid, {"MEMORY_MB": memory}, *traits)


def provider(
    rng: random.Random, name: str, parent: str | None, amounts: Mapping[str, int], *traits: str
) -> CloudProvider:
    return CloudProvider(
        uuid=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        name=name,
        parent=parent,
        inventories={c: Inventory(total=total, max_unit=total) for c, total in amounts.items()},
        traits=frozenset(traits),
    )


def asked_of(name: str) -> Request:
    """Return the request of a flavor as ``cpu-tiers simulate`` makes it."""
    vcpus, memory_mb, root_gb, specs = SPECS[name]
    flavor = Flavor(
        name=name, vcpus=vcpus, memory_mb=memory_mb, root_gb=root_gb, extra_specs=specs
    )
    server = ServerRequest(flavor=flavor, query_numa=True)
    weighed = translate(server._replace(query_numa=False)) if server.nodes else None
    return replace(server_queries(server), weighed=weighed)


def request_spec(name: str) -> objects.RequestSpec:
    vcpus, memory_mb, root_gb, specs = SPECS[name]
    flavor = objects.Flavor(
        id=1,
        flavorid=name,
        name=name,
        vcpus=vcpus,
        memory_mb=memory_mb,
        root_gb=root_gb,
        ephemeral_gb=0,
        swap=0,
        extra_specs=specs,
    )
    image = objects.ImageMeta(id=uuidutils.generate_uuid(), properties=objects.ImageMetaProps())
    spec = objects.RequestSpec.from_components(
        context.get_admin_context(),
        uuidutils.generate_uuid(),
        image,
        flavor,
        hardware.numa_get_constraints(flavor, image),
        objects.InstancePCIRequests(requests=[]),
        {},
        None,
        None,
        project_id=uuidutils.generate_uuid(),
        user_id=uuidutils.generate_uuid(),
        port_resource_requests=[],
    )
    spec.is_bfv, spec.num_instances = False, 1
    return spec


@contextmanager
def nova_scheduler(
    empty: Empty,
    cloud: SimulatedCloud,
    policy: Policy,
    asked: Callable[[], Request],
    closed: Collection[str] = (),
) -> Iterator[Any]:
    """Yield a nova-scheduler whose host states have the values of the cloud in memory.

    Placement's candidates get the order of the cloud in memory, since Placement's order is none.

    :param asked: returns the request of the server that nova-scheduler is asked for.
    :param closed: the hosts that a filter of nova-scheduler leaves out, as those that are down.
    """
    options = {
        "weight_classes": [
            "nova.scheduler.weights.cpu.CPUWeigher",
            "nova.scheduler.weights.disk.DiskWeigher",
            "nova.scheduler.weights.ram.RAMWeigher",
            "cpu_tiers.ResourceProviderWeigher",
        ],
        "enabled_filters": ["ComputeFilter"],
        "resource_provider_scoring": re.split("[=,]", policy.name)[0],
        "resource_provider_resources": f"VCPU,{CARD}=2.5",
        "resource_provider_weight_multiplier": policy.multiplier,
        **{f"{name}_weight_multiplier": value for name, value in policy.weighers.items()},
    }

    def states(_self: Any, _context: Any, asked: Iterable[str], _spec: Any) -> list[Any]:
        values = HostStates(cloud.hosts).values
        return [
            state(uuid, {name: of[uuid] for name, of in values.items()})
            for uuid in (host.root for host in cloud.hosts)
            if uuid in set(asked)
        ]

    def open_hosts(_self: Any, hosts: Iterable[Any], _spec: Any, _index: int = 0) -> list[Any]:
        return [host for host in hosts if host.host not in closed]

    with (
        scheduler(empty.adapter, [], {}, aliases=False, more=options) as seen,
        mock.patch.object(host_manager.HostManager, "get_host_states_by_uuids", states),
        mock.patch.object(host_manager.HostManager, "get_filtered_hosts", open_hosts),
        mock.patch.object(typical_servers, "HISTORY", History()),
    ):
        client = seen.manager.placement_client
        ask = client.get_allocation_candidates

        def sorted_answer(*args: Any) -> Any:
            candidates, summaries, version = ask(*args)
            order: dict[str, int] = {}
            for query in asked().queries:
                for request in cloud.candidates(read_form(query)).allocation_requests:
                    order.setdefault(text_of(request.allocations), len(order))
            candidates.sort(key=lambda each: order[text_of(amounts_of(each))])
            return candidates, summaries, version

        with mock.patch.object(client, "get_allocation_candidates", sorted_answer):
            yield seen.manager


def amounts_of(candidate: Mapping[str, Any]) -> Allocations:
    """Return what a candidate claims."""
    return {uuid: of["resources"] for uuid, of in candidate["allocations"].items()}


def text_of(allocations: Allocations) -> str:
    return json.dumps(allocations, sort_keys=True)


def state(uuid: str, values: Mapping[str, float]) -> host_manager.HostState:
    found = host_manager.HostState(uuid, uuid, uuidutils.generate_uuid())
    found.uuid, found.aggregates = uuid, []
    found.free_ram_mb, found.free_disk_mb = values["ram"], values["disk"]
    found.vcpus_total, found.vcpus_used, found.cpu_allocation_ratio = values["cpu"], 0, 1.0
    found.limits, found.instances = {}, {}
    return found


def select(manager_of_nova: Any, name: str, server: str) -> tuple[str, Allocations] | None:
    """Return the host and the allocations of a server that nova-scheduler has claimed."""
    admin = context.get_admin_context()
    try:
        ((selection, *_),) = manager_of_nova.select_destinations(
            admin,
            spec_obj=request_spec(name),
            instance_uuids=[server],
            return_objects=True,
            return_alternates=True,
        )
    except oslo_messaging.ExpectedException as error:
        if error.exc_info[0] is not exception.NoValidHost:
            raise error.exc_info[1] from None
        return None
    return selection.service_host, amounts_of(json.loads(selection.allocation_request))


@pytest.mark.parametrize(
    "text",
    [
        "fragmentation=10,disk=0",
        *in_turn(
            [
                "fragmentation,ram=0,cpu=0,disk=0",
                "best-fit=4,ram=-1",
                "boring=2,cpu=0",
                "requested-to-capacity=3,ram=0",
            ]
        ),
    ],
)
def test_a_simulated_scheduler_chooses_the_host_that_nova_chooses(empty: Empty, text: str) -> None:
    rng = random.Random(f"{SEED} {text}")
    made_once.copy_to_placement(empty.rows)
    states = draw_states(rng)
    write_state(states)
    cloud = SimulatedCloud(states)
    policy = replace(Policy.parse(text, WEIGHERS), resources={"VCPU": 1.0, CARD: 2.5})
    closed = {rng.choice(cloud.hosts).root}
    simulated = Scheduler(cloud, policy, closed=closed)
    servers: dict[str, Allocations] = {}
    chosen, hosts = 0, set()
    demands = {name: asked_of(name) for name in SPECS}
    name = ""
    with nova_scheduler(empty, cloud, policy, lambda: demands[name], closed) as of_nova:
        for number in range(SERVERS):
            if servers and rng.random() < 0.4:
                server = rng.choice(list(servers))
                cloud.release(servers.pop(server))
                of_nova.placement_client.delete_allocation_for_instance(
                    context.get_admin_context(), server, force=True
                )
            name, server = rng.choice(list(SPECS)), uuidutils.generate_uuid()
            expected = select(of_nova, name, server)
            found = simulated.choose(demands[name])
            what = f"server {number}, {name}"
            if expected is None:
                assert found is None, what
                continue
            assert found is not None, what
            host, request = found
            assert host == expected[0], what
            assert request.allocations == expected[1], what
            servers[server] = expected[1]
            cloud.claim(expected[1])
            chosen += 1
            hosts.add(host)
    assert chosen > SERVERS / 3
    assert len(hosts) > 3
