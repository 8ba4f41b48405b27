"""All queries of nova-scheduler for a server, with the additions of Nova's request filters.

Nova's filters require and forbid traits of the root provider for flavors, images and options of
nova.conf, and demand aggregates. Source: ``nova/scheduler/request_filter.py`` and
``ResourceRequest.from_request_spec`` of Nova 31 to 34. :data:`UNKNOWN` names the parts of Nova's
request that flavor, image, ports and nova.conf do not tell. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.extra_specs.cpu_masks import YES
from cpu_tiers.extra_specs.host_traits import traits_for_cpus, traits_for_weight
from cpu_tiers.model.flavor import Flavor, Image, properties
from cpu_tiers.model.names import PCPU, VCPU, is_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.room.pci_alias import ALIAS, PciAlias, device_groups, requested_devices
from cpu_tiers.translators import BUILT_IN, ServerRequest, Translator, fallback, translate

DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"
"""The trait of hosts whose nova-compute is disabled; each request of Nova forbids the trait."""

UNKNOWN = (
    "requests of device profiles, and PCI aliases without [filter_scheduler] pci_in_placement",
    "availability zones and aggregates of projects, unless --aggregate names them",
    "routed networks",
    "scheduler hints, a requested host, and Nova's filters",
    "the trait OWNER_NOVA, which Nova 34 requires once all hosts are upgraded",
)
"""The parts of Nova's request that are left out of :func:`novas_traits`."""

_PROFILE = "accel:device_profile"

_OF_DEVICES = (ALIAS, *(f"hw{mark}{key}" for mark in ":_" for key in ("pmem", "mem_encryption")))
"""The beginnings of the extra specs and image properties that :func:`with_devices` reads."""

_PREFILTER_PREFIXES: Mapping[str, str] = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU",
}
"""Image properties of ``[scheduler] image_metadata_prefilter``, with the prefix of the trait."""

_TRAITS_OF_VALUES: Mapping[tuple[str, str], str] = {
    ("os:secure_boot", "required"): "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
    ("hw:maxphysaddr_mode", "passthrough"): "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    ("hw:maxphysaddr_mode", "emulate"): "COMPUTE_ADDRESS_SPACE_EMULATED",
    ("hw:virtio_packed_ring", "true"): "COMPUTE_NET_VIRTIO_PACKED",
    ("hw:ephemeral_encryption", "true"): "COMPUTE_EPHEMERAL_ENCRYPTION",
    ("hw:pci_numa_affinity_policy", "socket"): "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    ("hw:sound_model", "virtio"): "COMPUTE_SOUND_MODEL_VIRTIO",
}
"""Extra specs, and image properties with ``_`` for ``:``, with the trait that a value needs."""


_OF_FILTERS = (
    "COMPUTE_NET_VIRTIO_PACKED",
    "COMPUTE_EPHEMERAL_ENCRYPTION",
    "COMPUTE_SOUND_MODEL_VIRTIO",
    "COMPUTE_ACCELERATORS",
)
"""The beginnings of the traits by which a server is not let into an isolated aggregate."""


class SchedulerOptions(NamedTuple):
    """Options of nova.conf for the queries.

    :param image_metadata_prefilter: of ``[scheduler]``.
    :param disable_fallback_pcpu_query: of ``[workarounds]``.
    :param require_host_traits: of ``[filter_scheduler]``.
    :param extend_cpu_policies: of ``[compute]``.
    :param pci_aliases: of ``[pci] alias`` by name, with ``[filter_scheduler] pci_in_placement``.
    :param query_placement_for_image_type_support: of ``[scheduler]``.
    :param isolating: the host aggregates that isolate hosts; none without ``[scheduler]
        enable_isolated_aggregate_filtering``.
    """

    image_metadata_prefilter: bool = False
    disable_fallback_pcpu_query: bool = False
    require_host_traits: bool = False
    extend_cpu_policies: bool = False
    pci_aliases: Mapping[str, PciAlias] = MappingProxyType({})
    query_placement_for_image_type_support: bool = False
    isolating: HostAggregates = HostAggregates()


DEFAULTS = SchedulerOptions()


@dataclass(frozen=True, slots=True)
class Request:
    """What nova-scheduler asks Placement for a server; equal for equal queries.

    :param queries: a host with a candidate of any of these queries is enough. nova-scheduler sends
        them all and joins the answers, as for dedicated CPUs, which a host that reports no PCPU
        gives as VCPU.
    :param left_out: the extra specs by which the server asks for something that the queries do
        not have: no answer knows whether a host has it.
    :param weighed: the query without the groups of NUMA nodes, whose request groups the weigher of
        nova-scheduler counts; ``None`` if it is the first query.
    :ivar kind: a text that is equal for equal queries.
    """

    queries: tuple[CandidateQuery, ...] = field(default=(), compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)
    weighed: CandidateQuery | None = field(default=None, compare=False)
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Work out the kind."""
        texts = (f"{query.to_query_string()}{sorted(query.absent)}" for query in self.queries)
        object.__setattr__(self, "kind", "|".join(texts))

    def changed(self, change: Callable[[CandidateQuery], CandidateQuery]) -> Request:
        """Return the request with other queries."""
        return replace(self, queries=tuple(map(change, self.queries)))

    @property
    def cpus(self) -> int:
        """Return the number of CPUs that a server requests, shared and dedicated."""
        amounts = self.queries[0].resources() if self.queries else {}
        return amounts.get(VCPU, 0) + amounts.get(PCPU, 0)

    @property
    def classes(self) -> frozenset[str]:
        """Return the resource classes of all queries; their names may be those of traits, too."""
        return frozenset(name for query in self.queries for name in query.resources())


def server_queries(
    server: ServerRequest,
    translators: Mapping[str, Translator] = BUILT_IN,
    options: SchedulerOptions = DEFAULTS,
    member_of: frozenset[frozenset[str]] = frozenset(),
) -> Request:
    """Return the queries for a server that is going to be created.

    :param member_of: sets of aggregates; the host must be in an aggregate of each set.
    :raises InvalidInput: with every fault of flavor, image and ports.
    :raises ExtensionError: two translators request the same class.
    """
    required = _required(server, options)
    queries = [translate(server, translators), fallback(server, translators)]
    is_pinned = server.guest.policy == "dedicated" and server.own_groups.amount(PCPU) is None
    if is_pinned and not options.disable_fallback_pcpu_query:
        queries += _as_vcpu(server, translators)
    filtered = tuple(
        query._replace(
            root_required=query.root_required | required,
            root_forbidden=query.root_forbidden | {DISABLED_TRAIT},
        )
        for query in queries
        if query is not None
    )
    if asks_for_devices(server):
        filtered = tuple(with_devices(query, server, options) for query in filtered)
    closed = _closed(server, translators, options.isolating)
    if member_of or closed:
        filtered = tuple(_in_aggregates(query, member_of, closed) for query in filtered)
    return Request(filtered, left_out(server.flavor, options))


def asks_for_devices(server: ServerRequest) -> bool:
    """Tell whether a server may ask for what :func:`with_devices` adds."""
    return any(port.vnic_type == "remote-managed" for port in server.ports) or any(
        key.startswith(_OF_DEVICES)
        for key in (*server.flavor.extra_specs, *properties(server.image))
    )


def with_devices(
    query: CandidateQuery, server: ServerRequest, options: SchedulerOptions
) -> CandidateQuery:
    """Return the query with the PCI devices, memory encryption and persistent memory of a server.

    The host must support remote-managed ports, if the server has any.

    :raises InvalidInput: the extra spec of PCI devices is malformed.
    """
    devices = device_groups(server.flavor, options.pci_aliases)
    first, groups = _of_memory(server), [*query.groups]
    if first.resources:
        if groups and not groups[0].suffix:
            unsuffixed = groups.pop(0)
            first = unsuffixed._replace(
                resources={**unsuffixed.resources, **first.resources},
                required=unsuffixed.required | first.required,
            )
        groups.insert(0, first)
    groups += devices
    policy = query.group_policy
    if policy is None and sum(bool(group.suffix) for group in groups) > 1:
        policy = "none"  # as Nova, whose Placement demands a policy
    required = query.root_required
    if any(port.vnic_type == "remote-managed" for port in server.ports):
        required |= {"COMPUTE_REMOTE_MANAGED_PORTS"}
    return query._replace(groups=tuple(groups), group_policy=policy, root_required=required)


def _of_memory(server: ServerRequest) -> RequestGroup:
    """Return the request of encrypted and of persistent memory."""
    flavor, image = server.flavor, properties(server.image)
    resources = Counter(
        f"CUSTOM_PMEM_NAMESPACE_{label.strip().upper()}"
        for label in flavor.extra_specs.get("hw:pmem", "").split(",")
        if label.strip()
    )
    if not _is_true(_value("mem_encryption", flavor, image)):
        return RequestGroup(resources=resources)
    model = _value("mem_encryption_model", flavor, image) or "amd-sev"
    trait = f"HW_CPU_X86_{model.upper().replace('-', '_')}"
    required = frozenset({trait} if is_trait(trait) else ())
    return RequestGroup(resources={**resources, "MEM_ENCRYPTION_CONTEXT": 1}, required=required)


def left_out(flavor: Flavor, options: SchedulerOptions) -> tuple[str, ...]:
    """Return the extra specs of a flavor that no query here expresses.

    :raises InvalidInput: the extra spec of PCI devices is malformed.
    """
    keys = []
    if ALIAS in flavor.extra_specs:
        unknown = requested_devices(flavor).keys() - options.pci_aliases.keys()
        keys += [f"{ALIAS} {', '.join(sorted(unknown))}"] if unknown else []
    if profile := flavor.extra_specs.get(_PROFILE):
        keys.append(f"{_PROFILE} {profile}")
    return tuple(keys)


def _required(server: ServerRequest, options: SchedulerOptions) -> frozenset[str]:
    flavor, image, prefilter = server.flavor, server.image, options.image_metadata_prefilter
    required = novas_traits(flavor, image, image_metadata_prefilter=prefilter)
    if options.query_placement_for_image_type_support and image is not None:
        # As in Nova, a format without a trait of its own, or of no image, adds nothing.
        trait = f"COMPUTE_IMAGE_TYPE_{image.disk_format.upper()}"
        required |= {trait} if is_trait(trait) else set()
    if options.require_host_traits and server.query_vcpu_shares:
        required |= traits_for_weight(flavor)
    if options.require_host_traits and options.extend_cpu_policies:
        required |= traits_for_cpus(flavor, image)
    return required


def _closed(
    server: ServerRequest, translators: Mapping[str, Translator], isolating: HostAggregates
) -> frozenset[str]:
    """Return the aggregates whose hosts do not take a server.

    As in Nova, the traits of the flavor, of the image and of Nova's own parts of the request let a
    server in, but not the traits that the filters of requests add.
    """
    if not isolating.by_uuid:
        return frozenset()
    groups = translate(server._replace(query_numa=False), translators).groups
    own = novas_traits(server.flavor, server.image)
    traits = {name for name in own if not name.startswith(_OF_FILTERS)}
    traits.update(_of_memory(server).required, *(group.required for group in groups))
    return isolating.isolated(traits)


def _in_aggregates(
    query: CandidateQuery, member_of: frozenset[frozenset[str]], closed: frozenset[str]
) -> CandidateQuery:
    """Return the query for a host in aggregates: as by Nova, those of the unsuffixed group.

    :param closed: aggregates in which the host must not be.
    """
    first, *others = query.groups
    if first.suffix:  # a server with NUMA nodes, which has the anchor in the query that is sent
        first, others = RequestGroup(), [first, *others]
    return query._replace(
        groups=(first._replace(member_of=member_of, not_member_of=closed), *others)
    )


def _as_vcpu(
    server: ServerRequest, translators: Mapping[str, Translator]
) -> Iterator[CandidateQuery]:
    """Yield the second queries: all CPUs as VCPU, without emulator threads and thread policy.

    Source: ``ResourceRequest.from_request_spec`` with ``enable_pinning_translate=False``.
    Placement also answers with hosts that have dedicated CPUs and no free ones: Nova's
    NUMATopologyFilter, or the claim of nova-compute, refuses them.
    """
    vcpus = {"": server.flavor.vcpus}
    vcpus |= {f"_PROC{number}": len(node.cpus) for number, node in enumerate(server.nodes, 1)}

    def changed(group: RequestGroup) -> RequestGroup:
        if group.suffix not in vcpus or PCPU not in group.resources:
            return group
        others = {name: n for name, n in group.resources.items() if name != PCPU}
        return group._replace(resources={VCPU: vcpus[group.suffix], **others})

    others = {name: each for name, each in translators.items() if name != "thread_policy"}
    for query in (translate(server, others), fallback(server, others)):
        if query is not None:
            groups = tuple(map(changed, query.groups))
            yield query._replace(groups=groups, absent=frozenset({PCPU}))


def novas_traits(
    flavor: Flavor, image: Image | None, *, image_metadata_prefilter: bool = False
) -> frozenset[str]:
    """Return the traits that the root provider of a host must have."""
    image_properties = properties(image)
    required = {
        *_of_values(flavor.extra_specs, image_properties),
        *_of_tpm(flavor, image_properties),
    }
    if "COMPUTE_EPHEMERAL_ENCRYPTION" in required:
        encryption = _value("ephemeral_encryption_format", flavor, image_properties)
        required.add(f"COMPUTE_EPHEMERAL_ENCRYPTION_{encryption.upper()}")
    is_stateless = _is_true(image_properties.get("hw_firmware_stateless", ""))
    if image_properties.get("hw_firmware_type") == "uefi" and is_stateless:
        required.add("COMPUTE_SECURITY_STATELESS_FIRMWARE")
    if flavor.extra_specs.get(_PROFILE):
        required.add("COMPUTE_ACCELERATORS")
    if image_metadata_prefilter:
        names = [
            f"{prefix}_{image_properties[key].replace('-', '_').upper()}"
            for key, prefix in _PREFILTER_PREFIXES.items()
            if key in image_properties
        ]
        # As in Nova, a single name that is no trait switches the whole filter off.
        if all(map(is_trait, names)):
            required.update(names)
    return frozenset(filter(is_trait, required))


def _of_values(specs: Mapping[str, str], properties: Mapping[str, str]) -> Iterator[str]:
    for (key, value), trait in _TRAITS_OF_VALUES.items():
        given = specs.get(key, properties.get(key.replace(":", "_"), ""))
        if given == value or (value == "true" and _is_true(given)):
            yield trait


def _of_tpm(flavor: Flavor, properties: Mapping[str, str]) -> Iterator[str]:
    version = _value("tpm_version", flavor, properties)
    model = _value("tpm_model", flavor, properties)
    if version:
        yield f"COMPUTE_SECURITY_TPM_{version.replace('.', '_')}"
        yield "COMPUTE_SECURITY_TPM_CRB" if model == "tpm-crb" else "COMPUTE_SECURITY_TPM_TIS"


def _value(name: str, flavor: Flavor, properties: Mapping[str, str]) -> str:
    return flavor.extra_specs.get(f"hw:{name}", properties.get(f"hw_{name}", ""))


def _is_true(text: str) -> bool:
    """Tell whether Nova reads a text as true: oslo.utils.strutils.bool_from_string."""
    return text.strip().lower() in YES
