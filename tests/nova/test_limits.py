"""Unified limits of a project whose servers claim shares."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import fixtures
import pytest
from nova.limit import local
from nova.tests.functional.api.client import OpenStackApiException
from oslo_limit import fixture

from tests.nova.cloud import SHARES, Cloud

ANY = 1000


class TestUnifiedLimits(Cloud):
    """All services are in this process, so nova-api has the seams of nova-scheduler too.

    In production nova-api has no seam for Placement, see test_loading.
    """

    def setUp(self) -> None:
        self.flags(driver="nova.quota.UnifiedLimitsDriver", group="quota")
        super().setUp()
        local_limits = dict.fromkeys((*local.API_LIMITS, *local.DB_LIMITS), ANY)
        placement = {"servers": 3, "class:VCPU": 4, "class:MEMORY_MB": 4096}
        self.keystone({**local_limits, **placement})
        self.start_host("one", **{SHARES: 800})

    def keystone(self, registered: Mapping[str, int]) -> None:
        """Have Keystone answer with these limits, to the requests of each release of Nova."""
        connection = self.useFixture(fixture.LimitFixture(dict(registered), {})).mock_conn
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
        self.flags(endpoint_id="nova", group="oslo_limit")
        self.useFixture(
            fixtures.MockPatch("nova.utils.get_sdk_adapter", lambda *_, **__: connection)
        )

    def test_shares_without_a_limit_are_not_in_the_way(self) -> None:
        gold = self.tier("gold", "100", vcpus=2)
        for _ in range(2):
            assert self.allocated(self.boot(gold)["id"]) == {"one": 200}
        with pytest.raises(OpenStackApiException) as caught:
            self.boot(gold)  # 6 VCPU > 4
        assert caught.value.response.status_code == 403
        assert "class:VCPU" in caught.value.response.text
