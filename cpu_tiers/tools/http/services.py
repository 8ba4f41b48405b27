"""The services of a cloud: an adapter for each service, and one session for all of them.

The session comes from nova.conf (:mod:`cpu_tiers.tools.placement.session`) or from the openstack
client (:func:`services_of_client`). What asks no service, such as an answer about a snapshot,
imports this module too; so the libraries of HTTP are imported where a request is sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cpu_tiers.errors import printable
from cpu_tiers.tools.http.bounds import bound, causes
from cpu_tiers.tools.http.retries import RetryPolicy

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the settings of a session are, for the advice in an error.

    :param connection: the settings that decide which URL a service has.
    :param authority: the setting of the authority whose certificates are trusted.
    :param certificates: all settings of TLS.
    """

    connection: str
    credentials: str
    authority: str
    certificates: str


NOVA_CONF = Settings(
    connection="auth_url, valid_interfaces, region_name and cafile in [placement]",
    credentials="username, password, project_name and their domains in [placement] of nova.conf",
    authority="cafile in [placement] of nova.conf",
    certificates="cafile, certfile and keyfile in [placement] of nova.conf",
)
OPENSTACK_CLIENT = Settings(
    connection="auth_url, interface, region_name and cacert in clouds.yaml or OS_*",
    credentials="username, password, project and their domains in clouds.yaml or OS_*",
    authority="cacert in clouds.yaml, or OS_CACERT,",
    certificates="cacert, cert and key in clouds.yaml, or OS_CACERT, OS_CERT and OS_KEY",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of a cloud with the credentials of one user.

    :param adapter: returns the adapter for a type of service, such as ``compute``.
    :param settings: where the URLs and the credentials come from.
    """

    adapter: "Callable[[str], Adapter]"
    settings: Settings = NOVA_CONF
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)


_NOT_TRUSTED = frozenset({18, 19, 20, 21})
"""The codes of OpenSSL for a certificate that no trusted authority has signed: self-signed, a
self-signed one in the chain, no certificate of the issuer, and a chain of one certificate."""


def tls_fault(error: BaseException, settings: Settings) -> str | None:
    """Return the address, the reason of OpenSSL and the setting to check; ``None`` without TLS.

    keystoneauth1 and requests have the reason in the middle of a long text, or in a cause.

    :param error: what keystoneauth1 or requests raised for a request.
    """
    import ssl

    if type(error) is OSError:  # requests does not find a file of certificates
        return f"{error}; check {settings.certificates}"
    chain = list(causes(error))
    reason = next((cause for cause in chain if isinstance(cause, ssl.SSLError)), None)
    if reason is None:
        return None
    urls = (getattr(getattr(cause, "request", None), "url", None) for cause in chain)
    url = next(filter(None, urls), "the service")
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}" if parts.netloc else url
    if not isinstance(reason, ssl.SSLCertVerificationError):
        words = printable(reason.strerror or reason.reason or str(reason))
        return f"TLS with {address} fails: {words}; check {settings.certificates}"
    said = f"the certificate of {address} is refused: {printable(reason.verify_message)}"
    if reason.verify_code in _NOT_TRUSTED:
        return f"{said}; set {settings.authority} to a file with the certificate of its authority"
    return f"{said}; check the certificate, and {settings.connection}"


def services_of_client(session: "Session", region: Any) -> Services:
    """Return the services of the cloud that a user of the openstack client has chosen.

    :param session: the authenticated session of the client.
    :param region: ``openstack.config.cloud_region.CloudRegion``. clouds.yaml can have settings for
        each service, such as ``placement_endpoint_override``.
    """
    from keystoneauth1.adapter import Adapter

    from cpu_tiers.tools.http.redirects import refuse_other_hosts

    def adapter(service_type: str) -> Adapter:
        return Adapter(
            session=session,
            service_type=region.get_service_type(service_type),
            service_name=region.get_service_name(service_type),
            interface=region.get_interface(service_type),
            region_name=region.get_region_name(service_type),
            endpoint_override=region.get_endpoint(service_type),
        )

    refuse_other_hosts(session.session)
    bound(session.session)
    return Services(adapter=adapter, settings=OPENSTACK_CLIENT)
