"""Unified limits, as Keystone tells them to nova-api."""

from collections import ChainMap
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any

import fixtures
from nova.limit import local
from oslo_limit import fixture

from tests.nova.computes import Computes

ANY = 1000


def limit(cloud: Computes, limits: MutableMapping[str, int]) -> Any:
    """Have Keystone answer with these limits, also once they change, to each release of Nova.

    :returns: the stand-in of the connection to Keystone, which notes its calls.
    """
    of_api = dict.fromkeys((*local.API_LIMITS, *local.DB_LIMITS), ANY)
    registered = ChainMap(limits, of_api)
    connection = cloud.useFixture(fixture.LimitFixture(registered, {})).mock_conn
    find = connection.registered_limits.side_effect

    def registered_limits(**wanted: Any) -> Any:
        """Return all limits if the request names no limit: the older fixtures do not."""
        if "resource_name" in wanted:
            return find(**wanted)
        return [
            SimpleNamespace(resource_name=name, default_limit=limit)
            for name, limit in registered.items()
        ]

    connection.registered_limits.side_effect = registered_limits
    cloud.flags(endpoint_id="nova", group="oslo_limit")
    cloud.useFixture(fixtures.MockPatch("nova.utils.get_sdk_adapter", lambda *_, **__: connection))
    return connection


OF_NOVA = dict.fromkeys(("servers", "class:VCPU", "class:PCPU", "class:MEMORY_MB"), 100_000)
