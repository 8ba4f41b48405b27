"""What a scoring that counts typical servers reads of a request."""

import pytest
from nova import objects
from nova.scheduler import utils

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova.scheduler.typical_servers import groups_of


@pytest.fixture(autouse=True)
def nova_objects() -> None:
    objects.register_all()


def test_only_the_unsuffixed_group_avoids_the_numa_nodes() -> None:
    request = utils.ResourceRequest()
    own = request.get_request_group(None)
    own.resources, own.forbidden_traits = {"VCPU": 2}, {"CUSTOM_OLD"}
    port = objects.RequestGroup(requester_id="_PORT", resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1})
    port.required_traits = {"CUSTOM_NET"}
    request._add_request_group(port)
    assert groups_of(request, frozenset({"HW_NUMA_ROOT"})) == (
        RequestGroup("", {"VCPU": 2}, forbidden=frozenset({"CUSTOM_OLD", "HW_NUMA_ROOT"})),
        RequestGroup("_PORT", port.resources, frozenset({"CUSTOM_NET"})),
    )
