"""What is wrong where TLS fails: the address, the reason of OpenSSL, and the setting to look at.

keystoneauth1 and requests have the reason in the middle of a long text, or in a cause of an error.
"""

import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from cpu_tiers.errors import printable
from cpu_tiers.tools.http.settings import Settings

_NOT_TRUSTED = frozenset({18, 19, 20, 21})
"""The codes of OpenSSL for a certificate that no trusted authority has signed: self-signed, a
self-signed one in the chain, no certificate of the issuer, and a chain of one certificate."""


def tls_fault(error: BaseException, settings: Settings) -> str | None:
    """Return what to say of an error of TLS; ``None`` for another error.

    :param error: what keystoneauth1 or requests raised for a request.
    :param settings: where the settings of the session are, for the advice.
    """
    if type(error) is OSError:  # requests does not find a file of certificates
        return f"{error}; check {settings.certificates}"
    causes = list(_causes(error))
    reason = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if reason is None:
        return None
    urls = (getattr(getattr(cause, "request", None), "url", None) for cause in causes)
    address = _address(next(filter(None, urls), "the service"))
    if not isinstance(reason, ssl.SSLCertVerificationError):
        return f"TLS with {address} fails: {_words(reason)}; check {settings.certificates}"
    said = f"the certificate of {address} is refused: {printable(reason.verify_message)}"
    if reason.verify_code in _NOT_TRUSTED:
        return f"{said}; set {settings.authority} to a file with the certificate of its authority"
    return f"{said}; check the certificate, and {settings.connection}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes; urllib3 keeps a cause only as an argument of the error."""
    waiting, known = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) not in known:
            known.add(id(cause))
            yield cause
            parts = (cause.__cause__, cause.__context__, *cause.args)
            waiting += [
                part
                for part in (*parts, getattr(cause, "reason", None))
                if isinstance(part, BaseException)
            ]


def _address(url: str) -> str:
    """Return the scheme, the host and the port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url


def _words(error: ssl.SSLError) -> str:
    return printable(error.strerror or error.reason or str(error))
