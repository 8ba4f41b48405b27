"""``cpu-tiers domain show``: what a guest of a flavor gets."""

import re
from argparse import ArgumentParser, Namespace

from cpu_tiers import extensions
from cpu_tiers.cli.columns import Show
from cpu_tiers.cli.documents import read_flavor, read_image
from cpu_tiers.cli.inventory import add_capabilities_arguments, read_topology
from cpu_tiers.cli.options import ReadsNovaConf
from cpu_tiers.cli.request import add_server_arguments
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.guest.shares import domain_shares
from cpu_tiers.inventory import Host
from cpu_tiers.inventory.cpus import check_cpu_sets, shared_cpus
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.domain import domain_xml


class DomainShow(ReadsNovaConf, Show):
    """Show the libvirt domain of a server of a flavor on a host.

    ``-f value -c xml`` prints the XML alone.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take the server and the host."""
        parser = super().get_parser(prog_name)
        add_server_arguments(parser)
        add_capabilities_arguments(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        """Build the domain."""
        flavor = read_flavor(parsed_args.flavor)
        host = Host(name="this host", topology=read_topology(parsed_args))
        options = inventory_options(self.nova_conf())
        check_cpu_sets(host, options)
        guest = Guest(
            name=re.sub(r"[^\w.-]+", "_", flavor.name),
            flavor=flavor,
            image=read_image(parsed_args.image) if parsed_args.image else None,
            arch=host.topology.arch,
            shared_cpus=shared_cpus(host, options),
        )
        xml = domain_xml(guest, extensions.load(extensions.DOMAIN_XML))
        return ("flavor", "vcpus", "shares", "xml"), (
            flavor.name,
            flavor.vcpus,
            domain_shares(flavor),
            xml,
        )
