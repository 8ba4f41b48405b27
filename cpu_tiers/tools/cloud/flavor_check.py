"""``cpu-tiers flavor check``: the faults of flavors."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.extra_specs.numa import absent_pages
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import page_size_of
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.documents import Check, read_flavors
from cpu_tiers.tools.frame.formatting import ListCommand
from cpu_tiers.tools.frame.ladder_options import has_driver, scheduler_of
from cpu_tiers.tools.frame.notes_on_answers import tell_left_out, tell_unknown_additions
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.server_request import (
    add_numa_argument,
    add_volume_argument,
    as_in_spec,
    queries_of,
    request_of,
    without_root_disk,
)
from cpu_tiers.tools.frame.terminal import ProgressLine, count_of, join_names
from cpu_tiers.tools.placement.cloud_reader import read_empty_cloud
from cpu_tiers.tools.placement.inventories import placement_facts
from cpu_tiers.tools.reasons.never_served import never_served
from cpu_tiers.tools.tiers.flavor_advice import (
    UNCOUNTED_NODES,
    idle_keys,
    misspelt_keys,
    remedy_of_uncounted_nodes,
    sells_nodes,
)
from cpu_tiers.tools.tiers.ladder import Step, step_of_cloud, step_of_host
from cpu_tiers.tools.tiers.pair import AMOUNT, pair_faults
from cpu_tiers.translators import ServerRequest, Translator
from cpu_tiers.translators.broken_rules import request_faults
from cpu_tiers.translators.numa import read_form

LOG = logging.getLogger(__name__)


class _Checked(NamedTuple):
    """A flavor and its faults, or the faults of a document.

    :param flavor: ``None`` if the faults are of a document.
    :param queries: the queries for a server of the flavor; none if the flavor has faults.
    :param left_out: what the flavor asks for and the queries do not have.
    """

    source: str
    faults: FaultList
    flavor: Flavor | None = None
    queries: tuple[CandidateQuery, ...] = ()
    left_out: tuple[str, ...] = ()

    def rows(self) -> list[tuple[object, ...]]:
        return [(self.source, *fault) for fault in dict.fromkeys(self.faults.faults)]


class FlavorCheck(NovaConfCommand, ListCommand):
    """List every fault of each flavor; the exit status is 3 if there are faults."""

    all_help = "check all flavors of the cloud: ask Nova with the credentials in [placement]"

    takes_snapshot = reads_all_providers = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "flavor",
            nargs="*",
            metavar="FLAVORS.json",
            help="output of `openstack flavor show -f json` or `flavor list --long -f json`",
        )
        add_volume_argument(parser)
        add_numa_argument(parser, is_of_spec=True)
        parser.add_argument(
            "--hosts",
            action="store_true",
            help="also ask Placement, and list what no host could take even without servers",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        if not parsed_args.flavor and not parsed_args.all:
            self._parser.error("name a file with flavors, or give --all")
        conf = self.nova_conf()
        translators = extensions.load(extensions.TRANSLATORS)
        checked: list[_Checked] = []

        def server_of(flavor: Flavor) -> ServerRequest:
            counted = without_root_disk(flavor) if parsed_args.from_volume else flavor
            return as_in_spec(parsed_args, conf, request_of(conf, counted))

        def check(flavor: Flavor) -> Sequence[Fault]:
            return _faults(server_of(flavor), translators, step)

        cloud = self.cloud_source(parsed_args, conf)
        asks_cloud = parsed_args.hosts or parsed_args.all
        step = cache(lambda: _step(conf, cloud if asks_cloud else None))
        asked = cloud if parsed_args.hosts else None
        if parsed_args.hosts:
            self.find_tiers(conf, cloud)
        with ProgressLine("reading flavors") as progress:
            for source, flavors in _sources(parsed_args, cloud):
                faults = FaultList()
                checked.append(_Checked(source, faults))
                for number, flavor in enumerate(flavors(faults, check), start=1):
                    progress.tell(f"flavors of {source}: {number}")
                    server = server_of(flavor)
                    checked.append(_check(source, server, translators, conf, step, asked))
            if parsed_args.hosts:
                tell_unknown_additions(conf, cloud)
                progress.tell("asking Placement for hosts")
                empty = _check_hosts(cloud, checked, progress)
                # With the option, a server with NUMA nodes finds only hosts that report nodes.
                if not conf.filter_scheduler.query_placement_for_numa:
                    _check_nodes(checked, empty, cloud.service_states.strangers, step)
        _tell_unknown_effect(checked, step)
        rows = [row for item in checked for row in item.rows()]
        self.status = FOUND if rows else 0
        LOG.info("flavors: %d, faults: %d", sum(c.flavor is not None for c in checked), len(rows))
        return ("file", "where", "given", "allowed"), rows


AskStep = Callable[[], Step | None]
"""Asks for the step of the cloud, at most once, for the first flavor that needs the answer."""

_OF_TIERS = frozenset({MULTIPLIER, SHARES, AMOUNT})


def _step(conf: cfg.ConfigOpts, cloud: CloudSource | None) -> Step | None:
    """Return the step of the cloud; ``None`` if the effect of a multiplier is unknown.

    A nova.conf with credentials alone says nothing of nova-scheduler. So the multiplier may have
    an effect where a host has the trait of the driver, unless nova.conf names Nova's own driver.
    The effect is also unknown where no host reports shares yet, and without a cloud.
    """
    if conf.filter_scheduler.query_placement_for_vcpu_shares:
        return Step.DRIVER
    if cloud is None:
        return None
    with cloud.placement() as client:
        facts = placement_facts(client)
    if not facts.has_shares or (facts.has_trait and has_driver(conf) is not False):
        return None
    host = step_of_host(reports_shares=True, has_driver=False)
    return step_of_cloud([host], scheduler_of(conf))


def _tell_unknown_effect(checked: Sequence[_Checked], step: AskStep) -> None:
    """Say of which flavors the command does not know whether their multiplier has an effect."""
    names = [c.flavor.name for c in checked if c.flavor and MULTIPLIER in c.flavor.extra_specs]
    if names and step() is None:
        LOG.info(
            "It is not checked whether nova-scheduler requests shares for %s (flavors %s): give"
            " --all or --hosts, and --config-file with the nova.conf of nova-scheduler.",
            *(MULTIPLIER, join_names(names)),
        )


def _sources(
    parsed_args: Namespace, cloud: CloudSource
) -> Iterator[tuple[str, Callable[[FaultList, Check], Iterable[Flavor]]]]:
    """Yield each source of flavors, with the function that reads its flavors."""
    for path in parsed_args.flavor:
        yield path, partial(read_flavors, path)
    if parsed_args.all:
        yield cloud.name, cloud.flavors


def _named_traits(checked: Iterable[_Checked]) -> frozenset[str]:
    """Return the traits that the queries of flavors name, in the form that is sent."""
    queries = (read_form(query) for item in checked for query in item.queries)
    return frozenset[str]().union(*(query.named_traits() for query in queries))


def _check_hosts(
    cloud: CloudSource, checked: Sequence[_Checked], progress: ProgressLine
) -> SimulatedCloud:
    """Add what no host could take to the faults, and return the cloud without servers."""
    named = _named_traits(checked)
    strangers = cloud.service_states.strangers
    with cloud.placement() as client:
        present = client.traits_in_use()
        empty = read_empty_cloud(
            client, named, partial(progress.tell_number, "providers"), cloud.jobs
        )
    if page_size_of(present) is None:
        LOG.info("No host reports its page sizes, so page sizes are not checked.")
    has_hosts = any(host.root not in strangers for host in empty.hosts)
    if not has_hosts:
        LOG.info("Placement has no hosts, so sizes, classes and traits are not checked.")
    for _, faults, flavor, flavor_queries, left_out in checked:
        if flavor is None:
            continue
        tell_left_out(flavor, left_out)
        if absent := faults.read(absent_pages, flavor, None, present):
            faults.add(*absent)
        if flavor_queries and has_hosts:
            for fault in never_served(f"flavor {flavor.name}", flavor_queries, empty, strangers):
                faults.add(*fault)
    return empty


def _check_nodes(
    checked: Iterable[_Checked], empty: SimulatedCloud, strangers: frozenset[str], step: AskStep
) -> None:
    """Add tiers on NUMA nodes to the faults, if hosts report their shares as one amount."""
    as_one = sum(
        host.root not in strangers and VCPU_SHARES in host.tree[0].stocks for host in empty.hosts
    )
    for _, faults, flavor, *_ in checked if as_one else ():
        if flavor is not None and sells_nodes(flavor):
            hosts = f"{as_one:,} of {count_of(len(empty.hosts), 'host')}"
            given = f"its servers stand on NUMA nodes: {UNCOUNTED_NODES}; so {hosts}"
            has_driver = (step() or Step.DRIVER).has_driver
            allowed = remedy_of_uncounted_nodes(has_driver=has_driver)
            faults.add(f"flavor {flavor.name}", given, allowed)


def _check(
    source: str,
    server: ServerRequest,
    translators: Mapping[str, Translator],
    conf: cfg.ConfigOpts,
    step: AskStep,
    cloud: CloudSource | None,
) -> _Checked:
    faults = FaultList()
    queries: tuple[CandidateQuery, ...] = ()
    left_out: tuple[str, ...] = ()
    faults.faults += _faults(server, translators, step)
    with faults:
        server_queries = queries_of(conf, server, cloud=cloud)
        queries, left_out = server_queries.queries, server_queries.left_out
    return _Checked(source, faults, server.flavor, queries, left_out)


def _faults(
    server: ServerRequest, translators: Mapping[str, Translator], step: AskStep
) -> Sequence[Fault]:
    faults = list(request_faults(server, translators))
    if not faults:
        faults.extend(idle_keys(server.flavor, server.guest.nodes))
    return [
        *faults,
        *pair_faults(
            server.flavor,
            query_vcpu_shares=server.query_vcpu_shares,
            step=step() if _OF_TIERS & server.flavor.extra_specs.keys() else None,
        ),
        *misspelt_keys(server.flavor),
    ]
