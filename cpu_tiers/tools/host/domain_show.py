"""``cpu-tiers domain show``: the libvirt domain of a server on a host."""

import re
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from cpu_tiers import extensions
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError, InvalidInput
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.numa import NODES
from cpu_tiers.extra_specs.shares import domain_shares
from cpu_tiers.guest.pinning import DoesNotFit, pin
from cpu_tiers.guest.topology import guest_topology
from cpu_tiers.inventory import Host
from cpu_tiers.inventory.cpus import check_cpu_sets
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.guest import GuestTopology, Pinning
from cpu_tiers.tools.frame.formatting import ShowCommand
from cpu_tiers.tools.frame.host_arguments import add_capabilities_arguments, read_topology
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_server_arguments, read_server
from cpu_tiers.tools.libvirt.domain import write_domain
from cpu_tiers.tools.tiers.flavor_advice import divided
from cpu_tiers.translators import ServerRequest


class DomainShow(NovaConfCommand, ShowCommand):
    """Show the libvirt domain of a server on a host without other servers.

    `-f value -c xml` prints only the XML.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_server_arguments(parser)
        add_capabilities_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        guest = self._guest(parsed_args)
        xml = write_domain(guest, extensions.load(extensions.DOMAIN_XML))
        return ("flavor", "vcpus", "shares", "xml"), (
            guest.flavor.name,
            guest.flavor.vcpus,
            domain_shares(guest.flavor),
            xml,
        )

    def _guest(self, parsed_args: Namespace) -> Guest:
        conf = self.nova_conf()
        server, topology = read_server(parsed_args), read_topology(parsed_args)
        options = inventory_options(conf)
        host_of_guest = Host(name="this host", topology=topology)
        check_cpu_sets(host_of_guest, options, needs_nodes=True)
        host = ComputeHost.of(
            topology,
            vcpu_pin_set=options.vcpu_pin_set,
            cpu_shared_set=options.cpu_shared_set,
            cpu_dedicated_set=options.cpu_dedicated_set,
        )
        guest = guest_topology(guest_cpus(server.flavor, server.image))
        return Guest(
            name=re.sub(r"[^\w.-]+", "_", server.flavor.name),  # libvirt refuses "/" in names
            flavor=server.flavor,
            image=server.image,
            arch=topology.arch,
            host=host,
            topology=guest,
            pinning=_pinning(server, guest, host) if guest else None,
            realtime_priority=conf.libvirt.realtime_scheduler_priority,
        )


def _pinning(server: ServerRequest, guest: GuestTopology, host: ComputeHost) -> Pinning:
    """Return the pinning of a guest.

    :raises CpuTiersError: there is none. If ``hw:numa_nodes`` would make the guest fit, the
        message says so.
    """
    try:
        return pin(guest, host)
    except DoesNotFit as error:
        for count, flavor in divided(server.flavor, server.image, len(host.cells)):
            with suppress(InvalidInput, DoesNotFit):
                if topology := guest_topology(guest_cpus(flavor, server.image)):
                    pin(topology, host)
                    message = f"{error}\nwith {NODES}={count} the server fits"
                    raise CpuTiersError(message) from error
        raise
