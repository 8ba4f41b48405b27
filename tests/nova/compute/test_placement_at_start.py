"""Nova's own client of Placement, which nova-compute makes before the driver is loaded.

docs/admin/compute.rst says how nova-compute starts while Placement is away. In a process of its
own, because Nova's configuration object keeps the options of ``[placement] auth_type``.
"""

import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from nova.compute import manager

SDK = tuple(int(number) for number in version("openstacksdk").split(".")[:2])
PROGRAM = """
import json, sys
import requests
from keystoneauth1 import fixture
token = fixture.V3Token()
token.set_project_scope()
token.add_service("placement").add_standard_endpoints(public="http://placement")
def send(self, request, **options):
    if not request.url.startswith("http://keystone/v3"):
        raise requests.ConnectionError("no route", request=request)
    answer = requests.Response()
    answer.request, answer.url, answer.status_code = request, request.url, 200
    answer.headers["X-Subject-Token"] = "token"
    document = {"version": fixture.V3Discovery("http://keystone/v3")}
    answer._content = json.dumps(token if request.method == "POST" else document).encode()
    return answer
requests.adapters.HTTPAdapter.send = send
import nova.conf
from nova.scheduler.client import report
for path in sys.argv[1:]:
    nova.conf.CONF([], default_config_files=[path])
    try:
        client = report.SchedulerReportClient()
        print("made")
        client.get("/resource_providers")
    except Exception as error:
        print(type(error).__name__)
"""
OPTIONS = """
[placement]
auth_type = password
auth_url = http://keystone/v3
username = nova
password = secret
project_name = service
user_domain_name = Default
project_domain_name = Default
valid_interfaces = public
"""


def test_the_client_needs_placement_unless_the_endpoint_is_configured(tmp_path: Path) -> None:
    """Keystone answers with a catalog, and nobody answers for Placement."""
    catalog, override = tmp_path / "catalog.conf", tmp_path / "override.conf"
    catalog.write_text(OPTIONS)
    override.write_text(f"{OPTIONS}endpoint_override = http://placement\n")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(catalog), str(override)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    catalog_outcome, *override_outcome = done.stdout.split()
    assert catalog_outcome == "NotSupported", done.stderr
    if SDK >= (4, 12):  # openstacksdk 4.5, of Nova 31, raises AttributeError
        assert override_outcome == ["made", "ConnectFailure"], done.stderr


def test_the_client_is_made_before_the_driver() -> None:
    lines = inspect.getsource(manager.ComputeManager.__init__)
    assert 0 < lines.index("SchedulerReportClient()") < lines.index("load_compute_driver(")
