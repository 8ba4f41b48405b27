"""Lines that the tests of the cloud add to the files of Nova."""

from tests.cloud.page import Shell

DRIVER = """\
[DEFAULT]
compute_driver = cpu_tiers.LibvirtDriver"""
REPORT = """\
[libvirt]
report_vcpu_shares = true
vcpu_share_multiplier = 100"""
"""Both are for nova-compute.conf."""

QUERY = """\
[filter_scheduler]
query_placement_for_vcpu_shares = true
weight_classes = nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher"""
"""For nova.conf."""


def add(shell: Shell, lines: str, path: str, host: str = "") -> None:
    """Add lines to a file of a host."""
    on = f"on {host} " if host else ""
    shell.output_of(f"{on}bash -c \"printf '%s\\n' '{lines}' >> {path}\"")
