"""The services of the openstack client's region, as the plugin hands them out."""

from types import SimpleNamespace

from keystoneauth1.session import Session

from cpu_tiers.tools.frame import openstack_plugin
from cpu_tiers.tools.http.services import OPENSTACK_CLIENT, Services
from tests.unit.http.region import RegionOfClient


def test_the_settings_of_each_service_count() -> None:
    session = Session()
    connection = SimpleNamespace(config=RegionOfClient())
    manager = SimpleNamespace(session=session, sdk_connection=connection)
    services = openstack_plugin.make_client(manager)
    assert isinstance(services, Services)
    assert services.settings == OPENSTACK_CLIENT
    adapter = services.adapter("compute")
    assert adapter.session is session
    assert adapter.service_type == "type of compute"
    assert adapter.service_name == "name of compute"
    assert adapter.interface == "interface of compute"
    assert adapter.region_name == "region of compute"
    assert adapter.endpoint_override == "http://compute"
    # Redirects to other hosts are refused, and answers have bounds.
    assert len(session.session.hooks["response"]) == 2
