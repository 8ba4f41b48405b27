"""The exceptions by which a request of cpu-tiers fails inside a service of Nova."""

from keystoneauth1.exceptions import ClientException
from nova import exception
from oslo_db.exception import DBError
from oslo_messaging import MessagingException

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
