"""The options that stand before any command, as the commands read them."""

from argparse import Namespace
from typing import cast

from cliff.command import Command
from oslo_config import cfg

from cpu_tiers.conf.read import read_config


class NovaConfCommand(Command):
    """A command that reads nova.conf; beside it stands the kind of its output."""

    def get_epilog(self) -> str:
        """Say at the end of the help what the command cannot list itself."""
        return (
            "nova.conf is read, too: --config-file FILE names it. That and --placement "
            "{config,embedded} are options of every command; see cpu-tiers --help."
        )

    @property
    def wants_embedded(self) -> bool:
        """Whether ``--placement embedded`` was given."""
        return bool(self._options.placement == "embedded")

    @property
    def config_files(self) -> list[str]:
        """The files that ``--config-file`` names."""
        return list(self._options.config_file)

    def nova_conf(self) -> cfg.ConfigOpts:
        """Return the configuration that ``--config-file`` names.

        :raises InvalidInput: see :func:`~cpu_tiers.conf.read.read_config`.
        """
        return read_config(self.config_files)

    @property
    def _options(self) -> Namespace:
        return cast(Namespace, self.app_args)  # cliff sets it whenever it runs a command
