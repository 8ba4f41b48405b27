"""What a running libvirt says, where libvirt-python is installed.

Its calls block for as long as libvirt does not answer. So each question is
asked in a thread of its own, and the wait for the answer is bounded.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from cpu_tiers.errors import CpuTiersError, printable

_Answer = TypeVar("_Answer")

LOG = logging.getLogger(__name__)

ANSWER_SECONDS = 30.0
"""What a libvirt may take for all that one function here asks."""


class LibvirtUnavailable(CpuTiersError):
    """libvirt-python is missing, or libvirt does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDomain:
    """What libvirt says about a domain that runs.

    :param xml: its definition.
    :param shares: the weight of its cgroup, ``None`` where libvirt has none.
    """

    name: str
    xml: bytes
    shares: int | None


def read_capabilities(uri: str, *, seconds: float = ANSWER_SECONDS) -> bytes:
    """Return the capabilities XML of the host behind ``uri``.

    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time.
    """

    def read(connection: Any) -> bytes:
        text: str = connection.getCapabilities()
        return text.encode()

    return ask(uri, read, seconds=seconds)


def read_domains(uri: str, *, seconds: float = ANSWER_SECONDS) -> list[RunningDomain]:
    """Return the domains that run on the host behind ``uri``.

    One that ends meanwhile, or of which libvirt does not tell, is left out and
    logged.

    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time.
    """
    libvirt = load_libvirt()

    def read(connection: Any) -> list[RunningDomain]:
        domains = []
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE):
            try:
                domains.append(_read_domain(domain))
            except libvirt.libvirtError as error:
                LOG.warning("%s is left out: %s", printable(domain.name()), error)
        return domains

    return ask(uri, read, seconds=seconds)


def _read_domain(domain: Any) -> RunningDomain:
    return RunningDomain(
        name=domain.name(),
        xml=domain.XMLDesc().encode(),
        shares=domain.schedulerParameters().get("cpu_shares"),
    )


def read_hostname(uri: str, *, seconds: float = ANSWER_SECONDS) -> str:
    """Return the name of the host behind ``uri``, which Nova gives its provider, too.

    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time.
    """

    def read(connection: Any) -> str:
        name: str = connection.getHostname()
        return name

    return ask(uri, read, seconds=seconds)


def ask(
    uri: str, read: Callable[[Any], _Answer], *, seconds: float, write: bool = False
) -> _Answer:
    """Return what ``read`` makes of a connection, which is closed if libvirt answers.

    :param write: whether it changes something.
    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time.
    """
    libvirt = load_libvirt()
    answer = Future[_Answer]()

    def ask() -> None:
        try:
            connection = (libvirt.open if write else libvirt.openReadOnly)(uri)
            try:
                answer.set_result(read(connection))
            finally:
                connection.close()
        except Exception as error:  # raised again where it was asked for
            answer.set_exception(error)

    Thread(target=ask, name=f"libvirt at {uri}", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        raise LibvirtUnavailable(
            f"libvirt at {uri} has not answered within {seconds:g} seconds"
        ) from error
    except libvirt.libvirtError as error:
        raise LibvirtUnavailable(f"libvirt at {uri}: {error}") from error


def load_libvirt() -> Any:
    """Return libvirt-python, an extra of this distribution.

    :raises LibvirtUnavailable: it is missing.
    """
    try:
        import libvirt
    except ImportError as error:
        raise LibvirtUnavailable(
            "--connect needs libvirt-python: pip install 'cpu-tiers[libvirt]', or give files "
            "with the output of `virsh capabilities` and `virsh dumpxml`"
        ) from error
    libvirt.registerErrorHandler(lambda *_: None, None)  # else it prints to stderr itself
    return libvirt
