"""Placement answers the query for candidates with 200 and nonsense (law L2).

A stock nova-scheduler selects a host or none. With the NUMA query and hosts that report their
nodes, nova-scheduler does the same, and always refuses by NoValidHost, which nova-conductor
handles in every operation.
"""

import copy
from collections.abc import Mapping
from typing import Any
from unittest import mock

import oslo_messaging
import requests
from nova import context, exception, objects
from nova.scheduler.client import report
from oslo_utils import uuidutils

from tests.hostile_answers import REFUSED, SELECTED, UNKNOWN_NODES, Answer
from tests.nova.computes import Computes
from tests.nova.numa.pinning import OPTIONS_OFF, PINNING


class HostileAnswers(Computes):
    microversion = "2.94"

    def setUp(self) -> None:
        super().setUp()
        self.start_compute("one", host_info=self.kind.hardware())
        specs = {"hw:numa_nodes": "1"}
        flavor = self._create_flavor(vcpu=1, memory_mb=128, disk=0, extra_spec=specs)
        server = self._create_server(flavor_id=flavor, networks="none")
        self.admin = context.get_admin_context()
        self.spec = objects.RequestSpec.get_by_instance_uuid(self.admin, server["id"])
        self.spec.requested_resources, self.spec.retry = [], None
        self.spec.request_level_params = objects.RequestLevelParams()

    def selected(self, answers: Mapping[str, Answer]) -> set[str]:
        """Return the names of the answers with which nova-scheduler selects a host."""
        return {name for name, answer in answers.items() if self.outcome(answer) is None}

    def outcome(self, hostile: Answer) -> Exception | None:
        """Return the exception of nova-scheduler; ``None`` if nova-scheduler selects the host."""
        get = report.SchedulerReportClient.get

        def answered(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
            answer = get(client, url, *args, **kwargs)
            if url.startswith("/allocation_candidates") and answer.json()["allocation_requests"]:
                changed = requests.Response()
                changed.status_code, changed._content = 200, hostile(answer.json())
                return changed
            return answer

        server, spec = uuidutils.generate_uuid(), copy.deepcopy(self.spec)
        spec.instance_uuid = server
        select = self.scheduler.manager.select_destinations
        with mock.patch.object(report.SchedulerReportClient, "get", answered):
            try:
                select(self.admin, spec_obj=spec, instance_uuids=[server], return_objects=True)
            except oslo_messaging.ExpectedException as expected:
                error: Exception = expected.exc_info[1]
                return error
            except Exception as other:
                return other
        self.placement.delete(f"/allocations/{server}")
        return None


class TestStock(HostileAnswers):
    kind = OPTIONS_OFF

    def test_the_outcomes_of_a_stock_scheduler(self) -> None:
        survived = {**SELECTED, **UNKNOWN_NODES}
        assert self.selected({**survived, **REFUSED}) == set(survived)


class TestNodes(HostileAnswers):
    kind = PINNING

    def test_the_outcomes_with_the_query_for_nodes(self) -> None:
        assert self.selected(SELECTED) == set(SELECTED)
        outcomes = {
            name: type(self.outcome(answer))
            for name, answer in {**UNKNOWN_NODES, **REFUSED}.items()
        }
        assert outcomes == dict.fromkeys([*UNKNOWN_NODES, *REFUSED], exception.NoValidHost)
