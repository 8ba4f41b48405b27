"""How the services load our parts, and what that does and does not touch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def execute(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", QUIET + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(code: str) -> str:
    result = execute(code)
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


LISTED = """
import json, os, pathlib, sys, tempfile
nova.objects.register_all()


def start_scheduler():
    from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
    ResourceProviderWeigher()
    from cpu_tiers.nova.scheduler.scores import RequestScores
    specs = {"quota:cpu_shares_multiplier": "100"}
    sizes = {"vcpus": 2, "memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    spec = nova.objects.RequestSpec(
        flavor=nova.objects.Flavor(name="gold", extra_specs=specs, **sizes),
        image=None,
        is_bfv=False,
        requested_resources=[],
        request_level_params=nova.objects.RequestLevelParams(),
    )
    provider = {
        "root_provider_uuid": "one",
        "parent_provider_uuid": None,
        "resources": {"VCPU": {"capacity": 8, "used": 0}},
        "traits": [],
    }
    (score,) = RequestScores({"one": provider}, spec).of(["one"])
    assert score > 0


def start_compute():
    from cpu_tiers.conf import libvirt
    from cpu_tiers.nova import options
    from cpu_tiers.nova.compute import driver
    options.register(libvirt)
    driver.COMPUTE.start()


def start_api():
    from cpu_tiers.nova.api import validators
    validators.register()


for name, (service, text) in CASES.items():
    pid = os.fork()  # before anything of ours is imported
    if not pid:
        conf = pathlib.Path(tempfile.mkdtemp(), "nova.conf")
        conf.write_text(text)
        nova.conf.CONF([], default_config_files=[str(conf)])
        {"nova-scheduler": start_scheduler, "nova-compute": start_compute, "nova-api": start_api}[
            service
        ]()
        ours = [name for name in sys.modules if name.partition(".")[0] == "cpu_tiers"]
        lines = {each: len(open(sys.modules[each].__file__).readlines()) for each in ours}
        print(json.dumps([name, lines]), flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
SHARES = "[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n"
NODES = "[filter_scheduler]\nquery_placement_for_numa = true\n"
SCORING = "resource_provider_scoring = of-a-distribution-beside-nova-scheduler-only\n"
CASES = {
    "the weigher": ("nova-scheduler", "", ()),
    "tiers": ("nova-scheduler", SHARES, ("nova.scheduler.reasons",)),
    "tiers without reasons": (
        "nova-scheduler",
        f"{SHARES}name_lacking_constraints = false\n",
        (),
    ),
    "the record": (
        "nova-scheduler",
        "[filter_scheduler]\ndecision_record_file = /nowhere/decisions\n",
        ("nova.scheduler.reasons",),
    ),
    "the NUMA query": (
        "nova-scheduler",
        NODES,
        ("nova.numa", "nova.scheduler.numa", "extra_specs.numa", "translators.numa"),
    ),
    "typical servers": (
        "nova-scheduler",
        "[filter_scheduler]\nresource_provider_scoring = fragmentation\n",
        ("weights.cost",),
    ),
    "the shares of a host": ("nova-compute", "[libvirt]\nreport_vcpu_shares = true\n", ()),
    "the options of nova-scheduler": ("nova-compute", f"{NODES}{SCORING}", ()),
    "the nodes of a host": (
        "nova-compute",
        "[compute]\nenable_numa_reporting_to_placement = true\n",
        ("nova.numa", "nova.compute.numa", "extra_specs.numa"),
    ),
    "faulty flavors": ("nova-api", f"[api]\nrefuse_faulty_flavors = true\n{NODES}{SCORING}", ()),
}
"""For each process, the service, its nova.conf, and the wings that it needs."""

WINGS = {
    *("nova.numa", "nova.scheduler.numa", "nova.scheduler.reasons", "nova.compute.numa"),
    *("extra_specs.numa", "translators.numa", "translators.constraints", "weights.cost"),
    "nova.compute.plugins",
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, dict[str, int]]:
    """Return, for each of CASES, the lines of each module of ours that the process has imported.

    nova-scheduler has also worked out the score of a host for a server of a tier.
    """
    starts = {name: (service, text) for name, (service, text, _) in CASES.items()}
    output = run(f"CASES = {starts!r}\n{LISTED}")
    return dict(map(json.loads, output.splitlines()))


@pytest.mark.parametrize("case", CASES)
def test_a_wing_is_imported_with_the_option(case: str, loaded: dict[str, dict[str, int]]) -> None:
    wings = {wing for wing in WINGS if f"cpu_tiers.{wing}" in loaded[case]}
    assert wings == set(CASES[case][2])


def test_only_the_scheduler_imports_the_scores(loaded: dict[str, dict[str, int]]) -> None:
    importing = {CASES[case][0] for case in CASES if "cpu_tiers.weights" in loaded[case]}
    assert importing == {"nova-scheduler"}


@pytest.mark.parametrize(
    ("case", "most_lines"),
    [
        ("the weigher", 6_050),
        ("tiers", 6_200),
        ("the shares of a host", 7_500),
        ("faulty flavors", 4_400),
    ],
)
def test_tiers_need_few_lines(
    case: str, most_lines: int, loaded: dict[str, dict[str, int]]
) -> None:
    assert "cpu_tiers.extra_specs.shares" in loaded[case]
    assert sum(loaded[case].values()) <= most_lines


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


def test_nova_alone_imports_nothing_of_cpu_tiers() -> None:
    """The services of docs/install/stock-nova.rst, also beside an installed package."""
    code = """
import sys
nova.conf.CONF([], default_config_files=[])
import nova.compute.manager, nova.compute.provider_config, nova.virt.libvirt.driver
from nova.scheduler.filters import HostFilterHandler
from nova.scheduler.weights import HostWeightHandler
options = nova.conf.CONF.filter_scheduler
HostWeightHandler().get_matching_classes(options.weight_classes)
HostFilterHandler().get_matching_classes(options.available_filters)
print([name for name in sys.modules if name.partition(".")[0] == "cpu_tiers"])
"""
    assert run(code) == "[]\n"


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
import tempfile, pathlib
conf = pathlib.Path(tempfile.mkdtemp(), "nova.conf")
conf.write_text("[filter_scheduler]\\nresource_provider_weight_multiplier = 1.0\\n")
def consume_from_request(self, spec_obj, more): ...
HostState.consume_from_request = consume_from_request
nova.conf.CONF([], default_config_files=[str(conf)])
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
import json, os, pathlib, sys, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "nova.conf").write_text(f"[compute]\\nextend_cpu_policies = {WANTED}\\n")
(folder / "api-paste.ini").write_text(PASTE)
os.environ["OS_NOVA_CONFIG_DIR"] = str(folder)
sys.argv[1:] = []
if IS_EARLY:  # as the script nova-api-wsgi of Nova 31 and 32
    import nova.api.openstack.compute
from nova.api.openstack import wsgi_app
wsgi_app._setup_service = lambda host, name: None  # needs a database
names = ("osapi_compute", "nova-api-os-compute")
count = wsgi_app.init_application.__wrapped__.__code__.co_argcount  # 1 up to Nova 32
application = wsgi_app.init_application(*names[:count])
from nova.api.validation.extra_specs import validators
print(type(validators.VALIDATORS["quota:cpu_shares_multiplier"]).__module__)
"""
WRAPPED = """
from nova import service
from nova.compute.api import API
from nova.virt import hardware
def wrapped(function):
    return hasattr(function, "__wrapped__")
print(wrapped(hardware.numa_get_constraints), end=" ")
print(wrapped(hardware.get_emulator_thread_policy_constraint), end=" ")
print(wrapped(API._validate_flavor_image_numa_pci), end=" ")
print(wrapped(service.setup_profiler))
"""
PASTE = """
[composite:osapi_compute]
use = call:nova.api.openstack.urlmap:urlmap_factory
/v2.1: app
[app:app]
paste.app_factory = nova.api.openstack.compute:APIRouterV21.factory
"""


def start_api(*, wanted: bool, is_early: bool, before: str = "") -> str:
    """Start nova-api as WSGI servers do, without its database; return its log and output.

    :param is_early: import the package of the API before nova.conf is read.
    """
    code = f"{before}\nWANTED, IS_EARLY, PASTE = {wanted}, {is_early}, {PASTE!r}{API}{WRAPPED}"
    done = execute(code)
    return done.stderr + done.stdout


@pytest.mark.parametrize("is_early", [False, True])
def test_nova_api_wraps_functions_if_the_option_is_on(is_early: bool) -> None:
    output = start_api(wanted=True, is_early=is_early)
    assert output.endswith("cpu_tiers.nova.api.validators\nTrue True True False\n"), output
    assert output.count("cpu-tiers in nova-api has the features CPU policies") == 1


def test_nova_api_knows_the_extra_specs_if_the_option_is_off() -> None:
    output = start_api(wanted=False, is_early=True)
    assert output.endswith("cpu_tiers.nova.api.validators\nFalse False False False\n"), output
    assert "cpu-tiers in nova-api" not in output


def test_a_nova_that_does_not_fit_stops_the_api() -> None:
    before = """
from nova.virt import hardware
hardware.numa_get_constraints = lambda flavor, image_meta, more: None
"""
    output = start_api(wanted=True, is_early=False, before=before)
    assert "SeamMismatch: cpu-tiers does not fit Nova" in output
    assert "numa_get_constraints was expected with the parameters flavor, image_meta" in output


def test_a_command_reads_flavors_as_the_services_do() -> None:
    assert run("from cpu_tiers.tools.nova.cloud import configure; configure([])" + WRAPPED) == (
        "True True False False\n"
    )
