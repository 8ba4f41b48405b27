"""Requests of cpu-tiers inside a service of Nova, and the exceptions by which they fail."""

from typing import Any

from keystoneauth1.exceptions import ClientException
from nova import exception
from oslo_db.exception import DBError
from oslo_messaging import MessagingException

from cpu_tiers.model.names import by_each_name

NO_ANSWER = (
    ClientException,
    exception.NovaException,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)
"""Placement does not answer, answers with an error, with something else than JSON, or with JSON
that lacks a key or has another type. The functions of Nova's ``SchedulerReportClient`` raise these
exceptions, or code that reads the answer."""

NO_DATABASE = (DBError, MessagingException, exception.NovaException)
"""Nova's database cannot be read. nova-compute reads the database through nova-conductor:
nova-conductor does not answer (``MessagingTimeout``), answers with an exception that only
nova-conductor knows (``RemoteError``), or with an exception of Nova."""


def read(client: Any, context: Any, url: str, *, version: str) -> dict[str, Any]:
    """Return the body of Placement's answer to a GET of nova-scheduler.

    :param client: Nova's ``SchedulerReportClient``.
    :param version: the microversion of Placement.
    :raises ValueError: Placement answers with another status than 200, or without JSON, as a proxy
        with a page of its own does.
    :raises keystoneauth1.exceptions.ClientException: Placement does not answer.
    """
    response = client.get(url, version=version, global_request_id=context.global_id)
    if response.status_code != 200:
        raise ValueError(f"{response.status_code} {response.text}")
    body: dict[str, Any] = response.json()
    return body


def read_further(client: Any, context: Any, query: str, version: str) -> dict[str, Any]:
    """Return Placement's answer to a query under the other name of VCPU_SHARES.

    :param client: Nova's ``SchedulerReportClient``.
    :return: an empty answer, if the query requests no shares, or if Placement does not know the
        other name, because every host has ours.
    :raises ValueError: Placement answers with an error. Others of ``NO_ANSWER`` pass.
    """
    empty: dict[str, Any] = {"allocation_requests": [], "provider_summaries": {}}
    for other in by_each_name(query)[1:]:
        url = f"/allocation_candidates?{other}"
        response = client.get(url, version=version, global_request_id=context.global_id)
        if response.status_code == 200:
            return {**empty, **response.json()}
        # The query with our name, which has the same form, was no bad request.
        if response.status_code != 400:
            raise ValueError(f"{response.status_code} {response.text}")
    return empty
