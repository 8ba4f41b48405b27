"""Scores on host states: what a request asks for, what it took, and host states without scores."""

from collections.abc import Mapping
from typing import Any, ClassVar
from unittest import mock

import pytest

from cpu_tiers.weights import Forest
from tests.nova.scheduler.reporting_hosts import TWO, ReportingHosts

SMALL = "CUSTOM_MEMORY_PAGE_SIZE_SMALL"


class TestWeighed(ReportingHosts):
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        **ReportingHosts.scheduler_options,
        "resource_provider_weight_multiplier": 1.0,
        "resource_provider_scoring": "boring",
        "resource_provider_traits": ["HW_NUMA_ROOT", SMALL],
    }

    def test_traits_of_nodes_are_asked_for(self) -> None:
        """Free: 8 VCPU and 4096 MiB in all, of which a server takes 2 and 512."""
        one, two = self.start_host("one"), self.start_host("two")
        forests = []

        def kept(*args: Any, **values: Any) -> Any:
            forests.append(Forest(*args, **values))
            return forests[-1]

        with mock.patch("cpu_tiers.nova.scheduler.scores.Forest", kept):
            body = self._build_server(flavor_id=self.flavor("f", TWO, vcpus=2), networks="none")
            self.api.post_server({"server": {**body, "min_count": 2}})
            for server in self.api.get_servers():
                self._wait_for_state_change(server, "ACTIVE")
        (forest,) = forests
        scores = [forest.explain(host) for host in (one, two)]
        assert [host.trait_score for host in scores] == [1.0, 1.0]
        # one server each, then 6 VCPU and 3584 MiB are free: 1 - 2/6, 1 - 512/3584
        assert [host.resources["VCPU"] for host in scores] == [pytest.approx(2 / 3)] * 2
        assert [host.resources["MEMORY_MB"] for host in scores] == [pytest.approx(6 / 7)] * 2
