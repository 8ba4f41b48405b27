"""What Tempest loads from the entry point ``tempest.test_plugins``."""

from pathlib import Path

from oslo_config import cfg
from tempest.test_discover import plugins

from cpu_tiers_tempest_plugin.config import GROUP, OPTIONS


class CpuTiersPlugin(plugins.TempestPlugin):
    """The tests and the options of the plugin."""

    def load_tests(self) -> tuple[str, str]:
        """Return the folder with the tests, and the folder in which the package is."""
        package = Path(__file__).parent
        return str(package / "tests"), str(package.parent)

    def register_opts(self, conf: cfg.ConfigOpts) -> None:
        """Add the options to Tempest's."""
        conf.register_group(GROUP)
        conf.register_opts(OPTIONS, GROUP)

    def get_opt_lists(self) -> list[tuple[str, list[cfg.Opt]]]:
        """Return the options for the sample of tempest.conf."""
        return [(GROUP.name, OPTIONS)]
