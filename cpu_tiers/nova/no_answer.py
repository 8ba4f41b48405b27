"""The exceptions by which a request of cpu-tiers to Placement fails inside a service of Nova."""

from keystoneauth1.exceptions import ClientException
from nova import exception

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
