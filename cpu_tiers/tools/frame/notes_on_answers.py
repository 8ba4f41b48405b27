"""What an answer about a server does not know, in lines of its own beside the answer."""

import logging
from collections.abc import Collection, Mapping
from types import MappingProxyType

from oslo_config import cfg

from cpu_tiers.conf.weight_classes import notes_on_weighers
from cpu_tiers.extra_specs.soft_traits import soft_traits
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.service_states import ServiceStates
from cpu_tiers.tools.frame.cloud_source import CloudSource

LOG = logging.getLogger(__name__)


_IMAGE_TYPE, _ISOLATED = (
    "query_placement_for_image_type_support",
    "enable_isolated_aggregate_filtering",
)
_UNKNOWN_OPTIONS = (
    _IMAGE_TYPE,
    "query_placement_for_routed_network_aggregates",
    _ISOLATED,
    "limit_tenants_to_placement_aggregate",
)


def tell_left_out(flavor: Flavor, left_out: Collection[str]) -> None:
    """Say in a line of its own what a flavor asks for and an answer does not look at.

    :param left_out: of :class:`~cpu_tiers.tools.room.server_queries.Request`.
    """
    if left_out:
        LOG.warning(
            "flavor %s: hosts may be excluded by what the command does not look at: %s. Aliases of"
            " PCI devices are read from a nova.conf with [filter_scheduler] pci_in_placement",
            flavor.name,
            ", ".join(left_out),
        )


def unknown_additions(
    conf: cfg.ConfigOpts, cloud: CloudSource | None = None, image: Image | None = None
) -> list[str]:
    """Return the options of nova.conf for requests of nova-scheduler that are not known here.

    :param cloud: of whose aggregates the request makes use.
    :param image: of the server; ``None`` if it is not known.
    """
    on = [name for name in _UNKNOWN_OPTIONS if conf.scheduler[name]]
    if image is not None:
        on = [name for name in on if name != _IMAGE_TYPE]
    if cloud is not None and _ISOLATED in on and not cloud.aggregates.unknown:
        on.remove(_ISOLATED)
    return [f"[scheduler] {name}" for name in on]


def tell_unknown_additions(
    conf: cfg.ConfigOpts, cloud: CloudSource | None = None, image: Image | None = None
) -> None:
    """Say in a line of its own that nova-scheduler requests more than the command knows."""
    if names := unknown_additions(conf, cloud, image):
        LOG.warning(
            "nova-scheduler also requests what this command does not know: %s of nova.conf is on."
            " A host in the answer may be excluded by it.",
            ", ".join(names),
        )


def tell_unknown_states(states: ServiceStates) -> None:
    """Say in a line of its own that an answer counts hosts that may be down."""
    if states.unknown:
        LOG.warning(
            "Nova was not asked which hosts are up, so hosts that are down or renamed are"
            " counted, too: %s",
            states.unknown,
        )


def tell_notes_on_weighers(
    conf: cfg.ConfigOpts, extra_specs: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Say in a line of its own where nova-scheduler orders hosts otherwise than the command.

    :param extra_specs: of the flavor of the server, which may name preferred traits.
    """
    options, wants_ours = conf.filter_scheduler, bool(soft_traits(extra_specs))
    for note in notes_on_weighers(options, wants_ours=wants_ours):
        LOG.warning("nova-scheduler orders hosts otherwise: %s", note)
