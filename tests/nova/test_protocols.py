"""What the protocols name exists in the classes of Nova that they describe."""

import pytest

from cpu_tiers.nova import protocols
from cpu_tiers.nova.features import Attribute


@pytest.mark.parametrize(
    ("protocol", "place"),
    [
        (protocols.ResourceRequest, "nova.scheduler.utils:ResourceRequest"),
        (protocols.HostState, "nova.scheduler.host_manager:HostState"),
        (protocols.HostManager, "nova.scheduler.host_manager:HostManager"),
        (protocols.ReportClient, "nova.scheduler.client.report:SchedulerReportClient"),
        (protocols.ProviderData, "nova.compute.provider_tree:ProviderData"),
        (protocols.NovaTree, "nova.compute.provider_tree:ProviderTree"),
        (protocols.ResourceTracker, "nova.compute.resource_tracker:ResourceTracker"),
    ],
)
def test_the_classes_of_nova_have_the_members_of_the_protocols(protocol: type, place: str) -> None:
    members = {*protocol.__annotations__, *vars(protocol).keys() & {"get_request_group"}}
    assert members
    for name in members:
        Attribute(owner=place, name=name).verify()
