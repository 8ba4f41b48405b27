"""``cpu-tiers host watch``: a resident exporter of what each guest of a compute host gets."""

import logging
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from functools import partial

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import Host
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.libvirt.connection import read_capabilities, read_domains
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.tier_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.host.metrics_server import Address, answering, bound
from cpu_tiers.tools.host.watch_metrics import WatchCollector
from cpu_tiers.tools.host.watched_host import WatchedHost

LOG = logging.getLogger(__name__)

DEFAULT_ADDRESS = Address("127.0.0.1", 9777)


class HostWatch(NovaConfCommand):
    """Count what each guest of a compute host gets, and answer Prometheus, until Ctrl-C.

    The counters are the CPU time of the vCPUs, their waits, the time in which a quota stopped
    the guest, and the floor and the fair share of the guest while it wanted to run. The command
    asks libvirt only about guests that appear; all other figures are from files of the kernel.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the host, the address, the interval and the tiers."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--listen",
            type=Address.parse,
            default=DEFAULT_ADDRESS,
            metavar="ADDRESS:PORT",
            help="where Prometheus asks for the metrics, without encryption and without a "
            f"password; port 0 takes a free port (default: {DEFAULT_ADDRESS}, for programs of "
            "this machine only)",
        )
        parser.add_argument(
            "--interval",
            type=_seconds,
            default=10.0,
            metavar="SECONDS",
            help="time between two readings, 1 to 3600 seconds (default: 10)",
        )
        parser.add_argument(
            "--connect",
            metavar="URI",
            default="qemu:///system",
            help="URI of the libvirt on this machine (default: qemu:///system)",
        )
        add_tier_argument(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> None:
        """Read the guests once in each interval, until the command is interrupted."""
        if "://" in parsed_args.connect.replace(":///", ""):
            allowed = "run the command on the compute host, because it reads the cgroups there"
            raise InvalidInput.of("--connect", f"got {parsed_args.connect!r}", allowed)
        tiers, conf = read_tiers(parsed_args), self.nova_compute_conf()
        host: WatchedHost
        with bound(parsed_args.listen, WatchCollector(lambda: host.reading)) as server:
            capabilities = read_capabilities(parsed_args.connect)
            topology = parse_capabilities(capabilities, where=parsed_args.connect)
            describe = partial(read_domains, parsed_args.connect)
            host = WatchedHost(
                Host(name="this host", topology=topology),
                conf,
                lambda uuids: describe(uuids=uuids),
                tiers,
            )
            host.read()
            with answering(server) as address:
                LOG.info(
                    "Guests: %d; metrics: http://%s/metrics", len(host.reading.guests), address
                )
                _watch(host, parsed_args.interval)


def _watch(host: WatchedHost, interval: float) -> None:
    """Read the guests once in each interval.

    :raises KeyboardInterrupt: the command was interrupted.
    """
    start, readings = time.monotonic(), 1
    try:
        while True:
            passed = time.monotonic() - start
            time.sleep(interval - passed % interval)
            host.read()
            readings += 1
    except KeyboardInterrupt:
        seconds = time.monotonic() - start
        text = f"The watch has ended after {seconds:.0f} seconds and {readings} readings."
        raise KeyboardInterrupt(text) from None


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 1 <= (seconds := float(text)) <= 3600:
            return seconds
    raise ArgumentTypeError("give 1 to 3600 seconds")
