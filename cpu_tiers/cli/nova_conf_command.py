"""The base class of the commands that read nova.conf and the global options."""

import logging
from argparse import Namespace
from typing import cast

from cliff.command import Command
from oslo_config import cfg

from cpu_tiers.cgroup.files import Files
from cpu_tiers.cgroup.nova_compute import find_config
from cpu_tiers.conf.read import read_config

LOG = logging.getLogger(__name__)


class NovaConfCommand(Command):
    """A command that reads nova.conf.

    A subclass also inherits from ``Lister`` or ``ShowCommand``, which format the output.
    """

    def get_epilog(self) -> str:
        """Return the end of the help, which names the global options."""
        # cliff lists only the options of the command itself in the command's help.
        return (
            "The command reads nova.conf. The global options --config-file FILE and --placement "
            "{config,embedded} stand before the command; see cpu-tiers --help."
        )

    @property
    def wants_embedded(self) -> bool:
        """Tell whether ``--placement embedded`` was given."""
        return bool(self._options.placement == "embedded")

    @property
    def config_files(self) -> list[str]:
        """Return the paths that were given with ``--config-file``."""
        return list(self._options.config_file)

    def nova_conf(self) -> cfg.ConfigOpts:
        """Return the configuration in nova.conf.

        :raises InvalidInput: a file cannot be read, see
            :func:`~cpu_tiers.conf.read.read_config`.
        """
        return read_config(self.config_files)

    def nova_compute_conf(self) -> cfg.ConfigOpts:
        """Return the configuration of the nova-compute that runs on this machine.

        Without ``--config-file`` the files and folders are those with which nova-compute was
        started; without a running nova-compute they are the files of :meth:`nova_conf`.

        :raises InvalidInput: a file cannot be read, or several nova-compute run with different
            files.
        """
        paths = None if self.config_files else find_config(Files())
        if paths is None:
            return self.nova_conf()
        if any(paths):
            LOG.info("nova-compute was started with %s", ", ".join(paths.files + paths.folders))
        return read_config(paths.files, paths.folders)

    @property
    def _options(self) -> Namespace:
        return cast(Namespace, self.app_args)  # cliff sets app_args before it runs a command.
