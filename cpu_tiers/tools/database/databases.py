"""The databases of a cloud, by nova.conf and placement.conf."""

from collections.abc import Callable
from contextlib import closing, suppress
from functools import cached_property

import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.exc import ArgumentError

from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.database.connection import DatabaseUnavailable, Reader, Schema
from cpu_tiers.tools.database.stored_providers import SCHEMA, read_consumer, read_placement
from cpu_tiers.tools.database.stored_servers import NovaDatabases

_FILES = {
    "placement_database": "--config-file /etc/placement/placement.conf, beside nova.conf",
    "api_database": "the nova.conf of nova-api",
}
"""Which file has the URL, by the group of the option ``connection``."""


class Databases:
    """The databases of Placement and Nova, which are opened when they are read.

    :param conf: with the options of :func:`~cpu_tiers.conf.read.read_config`.
    :param hide: keeps the password in a URL out of all output; the URLs of cells stand in no file.
    """

    def __init__(self, conf: cfg.ConfigOpts, hide: Callable[[str], None]) -> None:
        self._conf, self._hide = conf, hide

    @cached_property
    def placement(self) -> Snapshot:
        """Return the providers and the allocations.

        The transactions on Nova's databases begin first, so that all are of nearly one moment.

        :raises DatabaseUnavailable: no file has the URL, or Placement's database does not answer.
        """
        if self._conf.api_database.connection:
            _ = self._nova
        with closing(self._placement()) as reader:
            return read_placement(reader)

    def _placement(self) -> Reader:
        return self._open(self._url("placement_database"), SCHEMA, "Placement's database")

    def consumer(self, uuid: str) -> Consumer:
        """Return a consumer as it is now, and not as of :attr:`placement`."""
        with closing(self._placement()) as reader:
            return read_consumer(reader, uuid)

    @cached_property
    def _nova(self) -> NovaDatabases | DatabaseUnavailable:
        try:
            return NovaDatabases(
                self._open,
                self._url("api_database"),
                self._conf.database.connection or "",
                self._down_after(),
            )
        except DatabaseUnavailable as error:
            return error

    @property
    def nova(self) -> NovaDatabases:
        """Return the databases of Nova.

        :raises DatabaseUnavailable: no file has the URL, or the API database does not answer.
        """
        if isinstance(self._nova, DatabaseUnavailable):
            raise self._nova
        return self._nova

    def close(self) -> None:
        """End the transactions; what is asked afterwards is read anew."""
        nova = self.__dict__.pop("_nova", None)
        if isinstance(nova, NovaDatabases):
            nova.close()

    def _down_after(self) -> int:
        driver = self._conf.servicegroup_driver
        if driver != "db":
            raise DatabaseUnavailable(
                f"nova.conf, [DEFAULT] servicegroup_driver: with {driver}, Nova's databases do not"
                " say which hosts are up; leave out --databases to ask the API"
            )
        seconds: int = self._conf.service_down_time
        return seconds

    def _url(self, group: str) -> str:
        url: str | None = self._conf[group].connection
        if not url:
            raise DatabaseUnavailable(
                f"nova.conf, [{group}] connection: not set; give {_FILES[group]}"
            )
        return url

    def _open(self, url: str, schema: Schema, name: str) -> Reader:
        self._hide(url)
        options = self._conf.cpu_tiers
        address: str | sa.URL = url
        if options.database_user:
            with suppress(ArgumentError):  # Reader says so
                address = sa.make_url(url).set(
                    username=options.database_user, password=options.database_password
                )
        return Reader(address, schema, name)
