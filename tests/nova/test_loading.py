"""How the services load our parts, and what that does and does not touch."""

import subprocess
import sys
from pathlib import Path

from tests.nova.wrapping import all_seams, modules

SNIPPET = Path(__file__).parents[2] / "etc" / "cpu-tiers" / "nova.conf.snippet"

# Nova and its libraries warn of themselves, whenever they are imported.
QUIET = """
import warnings
warnings.simplefilter("ignore")
warnings.filterwarnings("error", module="cpu_tiers")
import nova.monkey_patch, nova.conf, nova.objects
import nova.scheduler.manager, nova.scheduler.weights, nova.api.validation.extra_specs.base
from nova.scheduler.host_manager import HostState
from nova.scheduler.utils import ResourceRequest
"""


def run(code: str) -> str:
    command = [sys.executable, "-c", QUIET + code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_any_module_warns_of_nothing_and_touches_nothing() -> None:
    code = f"""
MODULES = {modules()!r}
FUNCTIONS = {[f"{seam.module}:{seam.path}" for seam in all_seams()]!r}
"""
    code += """
import importlib, pkgutil, sys
nova.objects.register_all()
before = [pkgutil.resolve_name(one) for one in FUNCTIONS]
for module in MODULES:
    for name in [one for one in sys.modules if one.partition(".")[0] == "cpu_tiers"]:
        del sys.modules[name]  # each finds by itself what it needs
    importlib.import_module(module)
assert before == [pkgutil.resolve_name(one) for one in FUNCTIONS]
assert "resource_provider_scoring" not in nova.conf.CONF.filter_scheduler
"""
    run(code)


def test_the_scheduler_starts_with_our_lines_in_nova_conf() -> None:
    code = f"""
SNIPPET = {str(SNIPPET)!r}
"""
    code += """
from nova.scheduler.weights import HostWeightHandler
nova.conf.CONF([], default_config_files=[SNIPPET])
names = nova.conf.CONF.filter_scheduler.weight_classes
weighers = [cls() for cls in HostWeightHandler().get_matching_classes(names)]
print(type(weighers[-1]).__name__, any(type(w).__name__ == "RAMWeigher" for w in weighers))
"""
    assert run(code) == "ResourceProviderWeigher True\n"


def test_a_bad_option_stops_the_scheduler() -> None:
    code = """
from oslo_config import cfg
import tempfile, pathlib
conf = pathlib.Path(tempfile.mkdtemp(), "nova.conf")
conf.write_text("[filter_scheduler]\\nresource_provider_scoring = exciting\\n")
nova.conf.CONF([], default_config_files=[str(conf)])
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
try:
    ResourceProviderWeigher()
except cfg.ConfigFileValueError as error:
    print(error)
"""
    assert "exciting" in run(code)


def test_a_nova_that_does_not_fit_stops_the_scheduler() -> None:
    code = """
def consume_from_request(self, spec_obj, more): ...
HostState.consume_from_request = consume_from_request
nova.conf.CONF([], default_config_files=[])
from cpu_tiers.nova.seams import SeamMismatch
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
try:
    ResourceProviderWeigher()
except SeamMismatch as error:
    print(error)
"""
    assert "HostState.consume_from_request was expected with the parameters self, spec_obj" in run(
        code
    )


API = """
from nova.api.openstack.compute import routes
"""
WRAPPED = """
from nova.compute.api import API
from nova.virt import hardware
def wrapped(function):
    return hasattr(function, "__wrapped__")
print(wrapped(hardware.numa_get_constraints), end=" ")
print(wrapped(hardware.get_emulator_thread_policy_constraint), end=" ")
print(wrapped(API._validate_flavor_image_numa_pci), end=" ")
print(wrapped(ResourceRequest.from_request_spec))
"""


def test_nova_api_installs_what_it_needs_when_it_loads_its_routes() -> None:
    code = """
from nova.api.validation.extra_specs import validators
print(type(validators.VALIDATORS["quota:cpu_shares_multiplier"]).__module__)
"""
    assert run(API + code + WRAPPED) == "cpu_tiers.nova.api.validators\nTrue True True False\n"


def test_the_scheduler_installs_what_it_needs() -> None:
    code = """
nova.conf.CONF([], default_config_files=[])
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
ResourceProviderWeigher()
"""
    assert run(code + WRAPPED) == "True True False True\n"


def test_nova_compute_installs_what_it_needs() -> None:
    code = """
nova.objects.register_all()
nova.conf.CONF([], default_config_files=[])
from nova.virt.libvirt.driver import LibvirtDriver as Novas
Novas.__init__ = lambda self, virtapi, read_only=False: None
from cpu_tiers.nova.compute.driver import LibvirtDriver
LibvirtDriver(None)
"""
    assert run(code + WRAPPED) == "True True False False\n"


def test_a_command_reads_flavors_as_the_services_do() -> None:
    assert run("from cpu_tiers.nova.commands.cloud import configure; configure([])" + WRAPPED) == (
        "True True False False\n"
    )


def test_a_nova_that_does_not_fit_stops_the_api() -> None:
    code = """
from nova.virt import hardware
hardware.numa_get_constraints = lambda flavor, image_meta, more: None
try:
    from nova.api.openstack.compute import routes
except Exception as error:
    print(type(error).__name__, error)
"""
    says = run(code)
    assert says.startswith("SeamMismatch cpu-tiers does not fit Nova")
    assert "numa_get_constraints was expected with the parameters flavor, image_meta" in says
