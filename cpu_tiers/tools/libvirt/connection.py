"""Query a running libvirt, if libvirt-python is installed.

A call of libvirt-python blocks until libvirt answers, however long that takes. Therefore each
query runs in a thread of its own, and the caller waits for a limited time only.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.in_time import in_time

_Answer = TypeVar("_Answer")

LOG = logging.getLogger(__name__)

ANSWER_SECONDS = 30.0
"""The time limit for all queries of one function of this module."""


class LibvirtUnavailable(CpuTiersError):
    """libvirt-python is missing, or libvirt does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDomain:
    """A running domain, as reported by libvirt.

    :param shares: the weight of the domain's cgroup; ``None`` if libvirt reports none.
    """

    name: str
    xml: bytes
    shares: int | None


def read_capabilities(uri: str) -> bytes:
    """Return the capabilities XML of the host behind ``uri``.

    :raises LibvirtUnavailable: as :func:`ask`.
    """
    text: str = ask(uri, lambda connection: connection.getCapabilities())
    return text.encode()


def read_domains(uri: str, *, uuids: Collection[str] | None = None) -> list[RunningDomain]:
    """Return the running domains of the host behind ``uri``.

    A domain is logged and left out of the result if the domain starts or ends during the query, or
    if libvirt refuses to describe the domain.

    :param uuids: the uuids of the domains to return; ``None`` for all domains. A caller that gives
        them asks again: a domain that starts or ends is left out without a warning.
    :raises LibvirtUnavailable: as :func:`ask`.
    """
    libvirt = load_libvirt()

    def read(connection: Any) -> list[RunningDomain]:
        domains = []
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE):
            try:
                if uuids is None or domain.UUIDString() in uuids:
                    name, xml = domain.name(), domain.XMLDesc().encode()
                    shares = domain.schedulerParameters().get("cpu_shares")
                    domains.append(RunningDomain(name=name, xml=xml, shares=shares))
            # Guests stop at any time: the other guests of the host are still of interest.
            except libvirt.libvirtError as error:
                if uuids is None or not _starts_or_ends(libvirt, domain):
                    text = "The domain %s is left out: libvirt does not describe it: %s"
                    LOG.warning(text, printable(domain.name()), error)
        return domains

    return ask(uri, read)


def _starts_or_ends(libvirt: Any, domain: Any) -> bool:
    """Tell whether a domain is about to start or to end, or has ended."""
    try:
        state, reason = domain.state()
    except libvirt.libvirtError as error:
        return bool(error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN)
    return state in (libvirt.VIR_DOMAIN_SHUTDOWN, libvirt.VIR_DOMAIN_SHUTOFF) or (
        (state, reason) == (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP)
    )


def read_hostname(uri: str) -> str:
    """Return the name of the host behind ``uri``, which is also the name of its root provider.

    :raises LibvirtUnavailable: as :func:`ask`.
    """
    return ask(uri, lambda connection: str(connection.getHostname()))


def ask(uri: str, read: Callable[[Any], _Answer], *, write: bool = False) -> _Answer:
    """Return the result of ``read`` for a connection to libvirt.

    The connection is closed afterwards, unless libvirt never answers.

    :param read: called with the connection, in a thread of its own.
    :param write: whether ``read`` changes something, which needs a connection for writing.
    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time.
    """
    libvirt = load_libvirt()

    def connect() -> _Answer:
        with closing((libvirt.open if write else libvirt.openReadOnly)(uri)) as connection:
            return read(connection)

    try:
        return in_time(connect, ANSWER_SECONDS)
    except TimeoutError as error:
        raise LibvirtUnavailable(
            f"libvirt at {uri} has not answered within {ANSWER_SECONDS:g} seconds"
        ) from error
    except libvirt.libvirtError as error:
        raise LibvirtUnavailable(f"libvirt at {uri}: {error}") from error


def load_libvirt() -> Any:
    """Return the module ``libvirt`` of libvirt-python, an extra of this distribution.

    :raises LibvirtUnavailable: libvirt-python is missing.
    """
    try:
        import libvirt
    except ImportError as error:
        raise LibvirtUnavailable(
            "--connect needs libvirt-python: pip install 'cpu-tiers[libvirt]', or give files "
            "with the output of `virsh capabilities` and `virsh dumpxml`"
        ) from error
    # Without a handler libvirt prints every error to stderr, in addition to the exception.
    libvirt.registerErrorHandler(lambda *_: None, None)
    return libvirt


def set_weights(uri: str, weights: Mapping[str, int]) -> Mapping[str, str]:
    """Set the weights of guests, in the kernel and in the definition that libvirt stores.

    :param weights: the weights by the uuid of the domain.
    :return: for each weight that could not be set, the reason by the uuid of the domain.
    :raises LibvirtUnavailable: as :func:`ask`. Some of the weights may be set then.
    """
    libvirt = load_libvirt()

    def write(connection: Any) -> Mapping[str, str]:
        failed = {}
        for uuid, weight in weights.items():
            try:
                domain = connection.lookupByUUIDString(uuid)
                flags = [libvirt.VIR_DOMAIN_AFFECT_LIVE]
                if domain.isPersistent():  # libvirt has a definition for the next start
                    flags.append(libvirt.VIR_DOMAIN_AFFECT_CONFIG)
                for flag in flags:  # libvirt does not accept both flags at once
                    domain.setSchedulerParametersFlags({"cpu_shares": weight}, flag)
            except libvirt.libvirtError as error:
                failed[uuid] = str(error)
        return failed

    return ask(uri, write, write=True)
