"""The base class of the commands that read nova.conf and ask the services of a cloud.

A command has two front doors: the program ``cpu-tiers``, and the openstack client, which finds
the same class by :mod:`cpu_tiers.tools.frame.openstack_plugin`. Only the session and the place of
``--config-file`` differ. What reads nova.conf and asks services is imported when a command needs
it, so that a command without them, and the help of every command, starts soon. A section
``[placement]`` that is missing or incomplete is an error, PlacementMisconfigured, only then.
"""

from __future__ import annotations

import logging
import os
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cliff.command import Command

from cpu_tiers.errors import CpuTiersError, InvalidInput
from cpu_tiers.tools.frame.app import hide, hide_tokens, hide_url, run_until_signal
from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.frame.terminal import HINT, fit_help

if TYPE_CHECKING:
    from oslo_config import cfg

    from cpu_tiers.tools.cgroup.nova_compute import ConfigPaths
    from cpu_tiers.tools.frame.cloud_source import CloudSource
    from cpu_tiers.tools.http.services import Services
    from cpu_tiers.tools.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

FOUND = 3
"""The exit status of a command that has found something, or no host."""

_MOST_STRANGERS = 3
"""So many processes with the name of nova-compute are named."""

WRITES = "the command writes to Placement"
"""A reason to refuse a snapshot."""


JOBS = 2
"""So many requests at the same time leave other requests room in a Placement of few processes:
a boot takes 1.9 times as long beside 2 requests, and 3.3 times beside 4 (two cores)."""

MOST_JOBS = 10
"""So many connections to a service does ``requests`` keep open."""

_EXTRAS = dict.fromkeys(("altair", "jinja2", "vl_convert"), "page")
_EXTRAS |= {"prometheus_client": "prometheus", "sqlalchemy": "database"}
"""The extra of cpu-tiers that installs a library, which is imported where it is needed."""


class NovaConfCommand(Command):
    """A command that reads nova.conf.

    A subclass also inherits from ``ListCommand`` or ``ShowCommand``, which format the output.
    """

    all_help = "show all lines of long lists, and all faults of a refusal"

    auth_required = True
    """Has the openstack client authenticate before it runs the command."""

    takes_snapshot = False
    """Whether the command reads a cloud, or a snapshot of a cloud in its place."""

    reads_all_providers = False
    """Whether the command may read all providers of a cloud."""

    snapshot_refusal: str | None = None
    """Why ``--snapshot`` is refused, such as :data:`WRITES`."""

    status = 0
    """The exit status of a command that has found something, or is refused."""

    needs_nova_conf = False
    """Whether the command is wrong without the nova.conf of the cloud or of a host."""

    _parser: ArgumentParser
    _given = Namespace()
    _services: Services | None = None
    _opened: ExitStack

    def get_epilog(self) -> str:
        if self.is_in_openstack_client:
            return str(super().get_epilog())
        # cliff lists only the options of the command itself in the command's help.
        return (
            "The command reads nova.conf. The global options --config-file FILE and --placement "
            "{config,embedded} stand before the command; see cpu-tiers --help."
        )

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add ``--all``, and in the openstack client ``--config-file``, no global option there."""
        self._parser = parser = super().get_parser(prog_name)
        fit_help(parser)
        parser.add_argument("--all", action="store_true", help=self.all_help)
        if self.is_in_openstack_client:
            parser.add_argument(
                "--config-file",
                action="append",
                default=[],
                required=self.needs_nova_conf,
                metavar="FILE",
                help="path of nova.conf, for the options of Nova and of cpu-tiers; may be"
                " repeated"
                + ("" if self.needs_nova_conf else " (default: the defaults of the options)"),
            )
        if self.takes_snapshot:
            parser.add_argument(
                "--snapshot",
                metavar="FILE",
                help="read this file of `cpu-tiers cloud snapshot` instead of Placement and Nova",
            )
            parser.add_argument(
                "--databases",
                action=BooleanOptionalAction,
                help="read the databases of Placement and Nova instead of their APIs, with the"
                " URLs of placement.conf and nova.conf (default: [cpu_tiers] read_databases)",
            )
        if self.reads_all_providers:
            parser.add_argument(
                "--jobs",
                type=whole_number_from(1, MOST_JOBS),
                default=JOBS,
                metavar="N",
                help="send Placement N requests at the same time while all providers are read, 1"
                f" to {MOST_JOBS} (default: {JOBS})",
            )
        if self.snapshot_refusal:
            parser.add_argument("--snapshot", type=self._refuse_snapshot, help=SUPPRESS)
        self.add_arguments(parser)
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments of the command itself."""

    def _refuse_snapshot(self, _: str) -> NoReturn:
        reason = f"{self.snapshot_refusal}, so a snapshot is not enough; ask the cloud itself"
        raise ArgumentTypeError(reason)

    def run(self, parsed_args: Namespace) -> int:
        """Run the command, and print which changes are written if it was interrupted.

        :raises CpuTiersError: an extra of cpu-tiers has to be installed, or the input has more
            faults than the error shows.
        """
        self._given = parsed_args
        with ExitStack() as self._opened:
            # cpu-tiers has done so before it has found the command.
            return run_until_signal(lambda: self._run(parsed_args))

    def _run(self, parsed_args: Namespace) -> int:
        try:
            return int(super().run(parsed_args)) or self.status
        except KeyboardInterrupt as interrupted:
            # cliff ends with the exit status 130 after Ctrl-C, but prints no message.
            if message := str(interrupted):
                LOG.error("%s", message)
            raise
        except ImportError as error:
            library = str(error.name).partition(".")[0]
            if library not in _EXTRAS:
                raise
            extra = f"pip install 'cpu-tiers[{_EXTRAS[library]}]'"
            raise CpuTiersError(f"the command needs {library}: {extra}") from error
        except InvalidInput as error:
            if not error.more:
                raise
            all_faults = "\n".join(map(str, error.faults))
            text = all_faults if parsed_args.all else f"{error} {HINT}"
            raise CpuTiersError(text) from error

    @property
    def is_in_openstack_client(self) -> bool:
        return self._client_manager is not None

    @property
    def wants_embedded(self) -> bool:
        return not self.is_in_openstack_client and bool(self._options.placement == "embedded")

    @property
    def config_files(self) -> list[str]:
        options = self._given if self.is_in_openstack_client else self._options
        return list(options.config_file)

    def nova_conf(self) -> cfg.ConfigOpts:
        """Return the configuration in nova.conf.

        In the openstack client, a nova.conf of this machine is not read if it is not given,
        because it may be that of another cloud.

        :raises InvalidInput: a file cannot be read, see
            :func:`~cpu_tiers.conf.read.read_config`.
        """
        from cpu_tiers.conf.read import read_config

        conf = read_config(self.config_files, is_searched=not self.is_in_openstack_client)
        hide(conf)
        return conf

    def nova_compute_conf(self) -> cfg.ConfigOpts:
        """Return the configuration of the nova-compute of this machine, and log its files.

        Without ``--config-file`` the files and folders are those with which nova-compute was
        started; without a running nova-compute they are the files of :meth:`nova_conf`.

        :raises InvalidInput: a file cannot be read or belongs to another user than nova-compute,
            or several nova-compute run with different files.
        """
        from cpu_tiers.conf.read import read_config

        paths = None if self.config_files else self._paths_of_service()
        conf = read_config(paths.files, paths.folders) if paths else self.nova_conf()
        hide(conf)
        read = [*conf.config_file, *filter(os.path.isdir, conf.config_dir)]
        LOG.info("configuration: %s", ", ".join(read) or "the defaults of all options")
        return conf

    def _paths_of_service(self) -> ConfigPaths | None:
        from cpu_tiers.tools.cgroup.files import Files
        from cpu_tiers.tools.cgroup.nova_compute import find_config
        from cpu_tiers.tools.frame.safe_files import check_owner

        paths, strangers = find_config(Files())
        for pid in () if paths else strangers[:_MOST_STRANGERS]:
            LOG.warning(
                "The configuration of process %s, named nova-compute, is not read: the process is"
                " in a container, or is not the service of this machine. If the process runs the"
                " guests of this machine, give its files with --config-file.",
                pid,
            )
        if paths:
            for path in (*paths.files, *paths.folders):
                check_owner(path, {paths.owner})
        return paths

    def services(self, conf: cfg.ConfigOpts) -> Services:
        """Return the services of the cloud, the same each time; the session ends with the command.

        The credentials are those of ``[placement]``, or of the openstack client.
        """
        if self.is_in_openstack_client:
            return cast("Services", self._client_manager.cpu_tiers)
        from cpu_tiers.tools.placement.session import opened_services

        if self._services is None:
            self._services = self._opened.enter_context(opened_services(conf))
            hide_tokens(self._services.adapter("placement").session.session)
        return self._services

    @contextmanager
    def placement(
        self,
        conf: cfg.ConfigOpts,
        *,
        connections: int | None = None,
        gives_back_oversold: bool = False,
    ) -> Iterator[PlacementClient]:
        """Yield a client of Placement, which sends nothing until a method is called.

        The arguments are passed to :func:`~cpu_tiers.tools.placement.session.placement_client`.
        """
        from cpu_tiers.tools.placement.session import connect, placement_client

        if self.wants_embedded:
            with connect(conf, embedded=True) as client:
                yield client
            return
        yield placement_client(
            self.services(conf),
            connections=connections,
            gives_back_oversold=gives_back_oversold,
        )

    def cloud_source(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> CloudSource:
        """Return the cloud, or the snapshot of the argument ``--snapshot`` in its place.

        :raises InvalidInput: the file is no snapshot.
        """
        from cpu_tiers.tools.frame.cloud_source import CloudSource, without_collections

        sources = {
            "--snapshot": parsed_args.snapshot is not None,
            "--databases": parsed_args.databases,
            "--placement embedded": self.wants_embedded,
        }
        given = [name for name, is_given in sources.items() if is_given]
        if len(given) > 1:
            raise InvalidInput.of(
                given[0], f"{given[1]} is given, too", "leave out one of the two"
            )
        databases = None
        if parsed_args.databases or (not given and self._reads_databases(parsed_args, conf)):
            from cpu_tiers.tools.database.databases import Databases

            databases = Databases(conf, hide_url)
            self._opened.callback(databases.close)
        if databases or parsed_args.snapshot is not None:
            self._opened.enter_context(without_collections())
        return CloudSource(
            lambda: self.services(conf),
            lambda: self.placement(conf),
            parsed_args.snapshot,
            has_nova=not self.wants_embedded,
            jobs=getattr(parsed_args, "jobs", JOBS),
            databases=databases,
        )

    def _reads_databases(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> bool:
        return parsed_args.databases is None and bool(conf.cpu_tiers.read_databases)

    def find_tiers(self, conf: cfg.ConfigOpts, cloud: CloudSource) -> None:
        """Set the options of requests by what Placement shows, where no nova.conf is given.

        This is for the openstack client, which reads no nova.conf of this machine.

        :raises PlacementError: Placement does not answer, or refuses.
        """
        from cpu_tiers.tools.frame.server_request import find_tiers

        if self.is_in_openstack_client and not self.config_files:
            find_tiers(conf, cloud)

    @property
    def _client_manager(self) -> Any:
        return getattr(self.app, "client_manager", None)

    @property
    def _options(self) -> Namespace:
        return cast(Namespace, self.app_args)  # cliff sets app_args before it runs a command.
