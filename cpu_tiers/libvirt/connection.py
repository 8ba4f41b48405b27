"""Capabilities from a running libvirt, where libvirt-python is installed."""

from cpu_tiers.errors import CpuTiersError


class LibvirtUnavailable(CpuTiersError):
    """libvirt-python is missing, or libvirt does not answer."""


def read_capabilities(uri: str) -> bytes:
    """Return the capabilities XML of the host behind ``uri``.

    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses.
    """
    try:
        import libvirt  # optional: an extra of this distribution
    except ImportError as error:
        raise LibvirtUnavailable(
            "--connect needs libvirt-python: pip install 'cpu-tiers[libvirt]', or give "
            "--capabilities a file with the output of `virsh capabilities`"
        ) from error
    libvirt.registerErrorHandler(lambda *_: None, None)  # else it prints to stderr itself
    try:
        connection = libvirt.openReadOnly(uri)
        try:
            text: str = connection.getCapabilities()
        finally:
            connection.close()
    except libvirt.libvirtError as error:
        raise LibvirtUnavailable(f"libvirt at {uri}: {error}") from error
    return text.encode()
