"""The requests of ``cpu-tiers simulate``: from a table or drawn, and their demands."""

from __future__ import annotations

import logging
import random
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oslo_config import cfg

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.guest.tier import Tier, tier_of_amounts
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.documents import read_bytes
from cpu_tiers.tools.frame.flavor_documents import read_flavors
from cpu_tiers.tools.frame.live_request import queries_of
from cpu_tiers.tools.frame.server_arguments import sends_numa_query
from cpu_tiers.tools.simulation.requests import Arrival, draw_arrivals, read_arrivals
from cpu_tiers.tools.simulation.scheduler import Demand
from cpu_tiers.tools.simulation.snapshot import Snapshot
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRequests:
    """The requests of each seed, and the demands of their flavors by name."""

    streams: Sequence[Sequence[Arrival]]
    demands: Mapping[str, Demand]

    @classmethod
    def read(
        cls,
        parsed_args: Namespace,
        conf: cfg.ConfigOpts,
        snapshot: Snapshot,
        tiers: Sequence[Tier],
    ) -> SimulatedRequests:
        """Read or draw the requests; log flavors that are left out, because they have faults.

        :raises InvalidInput: with every fault of the arguments and of the table, or with those of
            the flavors if no flavor is left.
        """
        faults = FaultList()  # of flavors
        flavors = _flavors(parsed_args, snapshot, faults)
        table = _table(parsed_args, flavors, are_all=not faults.faults)
        shares = _shares(parsed_args.mix, flavors) if table is None else {}
        wanted = shares if table is None else {arrival.flavor for arrival in table}
        demands = _demands(
            parsed_args, conf, [f for name, f in flavors.items() if name in wanted], tiers, faults
        )
        if not demands:
            faults.raise_if_any()
        for fault in faults.faults:
            LOG.warning("A flavor is left out: %s", fault)
        if table is not None:
            table = _requests_of(table, demands)
            return cls(streams=[table] * parsed_args.seeds, demands=demands)
        shares = {name: share for name, share in shares.items() if name in demands}
        streams = [
            # Not for secrets: a seed repeats a simulation.
            draw_arrivals(parsed_args.draw, shares, parsed_args.stay, random.Random(seed))  # noqa: S311
            for seed in range(parsed_args.seeds)
        ]
        return cls(streams=streams, demands=demands)


def _flavors(
    parsed_args: Namespace, snapshot: Snapshot, faults: FaultList
) -> Mapping[str, Flavor]:
    """Return the flavors of the file or else of the snapshot, by name.

    :param faults: collects the faults of flavors that are left out.
    """
    if parsed_args.flavors:
        flavors = tuple(read_flavors(parsed_args.flavors, faults))
        where = parsed_args.flavors
    else:
        flavors = snapshot.flavors
        where = parsed_args.snapshot
    if not flavors:
        faults.raise_if_any()
        raise InvalidInput.of(where, "no flavors", "give the flavors with --flavors")
    return {flavor.name: flavor for flavor in flavors}


def _table(
    parsed_args: Namespace, flavors: Mapping[str, Flavor], *, are_all: bool
) -> list[Arrival] | None:
    """Return the requests of the table; ``None`` if requests are drawn.

    :param are_all: whether no flavor was left out, so that a name of no flavor is a fault.
    """
    path = parsed_args.requests
    if not path:
        return None
    try:
        lines = read_bytes(path).decode().splitlines()
    except UnicodeError as error:
        raise InvalidInput.of(path, "no text in UTF-8", "give a CSV table") from error
    return read_arrivals(lines, list(flavors) if are_all else None, where=path)


def _requests_of(table: Iterable[Arrival], demands: Mapping[str, Demand]) -> list[Arrival]:
    """Return the requests for flavors that are not left out, and log the number of the others."""
    requests, others = list[Arrival](), Counter[str]()
    for arrival in table:
        if arrival.flavor in demands:
            requests.append(arrival)
        else:
            others[arrival.flavor] += 1
    if others:
        LOG.warning(
            "Requests left out, whose flavors are left out or not known: %d (%s)",
            others.total(),
            ", ".join(sorted(others)),
        )
    return requests


def _shares(mix: Sequence[str], flavors: Mapping[str, Flavor]) -> Mapping[str, float]:
    """Return how often each flavor is drawn."""
    faults = FaultList()
    shares = {}
    for text in mix:
        name, _, number = text.rpartition("=")
        try:
            shares[name] = float(number)
        except ValueError:
            shares[name] = 0.0
        if name not in flavors or not 0 < shares[name] < float("inf"):
            faults.add(f"--mix {text}", f"got {text!r}", "give a flavor, = and a number above 0")
    faults.raise_if_any()
    return shares or dict.fromkeys(flavors, 1.0)


def _demands(
    parsed_args: Namespace,
    conf: cfg.ConfigOpts,
    flavors: Iterable[Flavor],
    tiers: Sequence[Tier],
    faults: FaultList,
) -> Mapping[str, Demand]:
    """Return what servers of each flavor request, as nova-scheduler would ask for it.

    :param faults: collects the faults of flavors that are left out.
    """
    options = conf.filter_scheduler
    demands = {}
    for flavor in flavors:
        server = ServerRequest(
            flavor=flavor,
            query_vcpu_shares=options.query_placement_for_vcpu_shares,
            query_numa=sends_numa_query(parsed_args, options),
        )
        with faults:
            queries = queries_of(conf, server)
            has_nodes = len(queries.first) > 1
            plain = queries_of(conf, server._replace(query_numa=False)) if has_nodes else None
            demands[flavor.name] = Demand(
                flavor=flavor.name,
                queries=queries.first,
                otherwise=queries.otherwise,
                weighed=plain.first[0] if plain else None,
                shares=effective_shares(flavor),
                tier=_tier(server, tiers),
            )
    return demands


def _tier(server: ServerRequest, tiers: Sequence[Tier]) -> str:
    """Return the name of a server's tier; empty without a tier or without shared vCPUs."""
    shares, vcpus = effective_shares(server.flavor), server.cpus.shared
    if shares is None or not vcpus:
        return ""
    return tier_of_amounts([{VCPU: vcpus, VCPU_SHARES: shares.claim(vcpus)}], tiers)
