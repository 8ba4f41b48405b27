"""Lines of cpu-tiers in the log of a service of Nova, written as the services write them."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import cpu_tiers
import cpu_tiers.nova

SERVER = "6a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OURS = Path(cpu_tiers.__file__).parent
NOVA = Path(cpu_tiers.nova.__file__).parent

SERVICE = f"""
import sys, warnings
warnings.simplefilter("ignore")
import nova.monkey_patch
from nova import config, context, objects
from oslo_log import log

config.parse_args(["nova-scheduler", "--config-file", sys.argv[1]])
log.setup(nova.conf.CONF, "nova")  # as each program of Nova does
objects.register_all()
context.RequestContext(user_id="alice", project_id="acme", request_id="req-1")

from cpu_tiers.errors import InvalidInput
from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import options
from cpu_tiers.nova.compute.plugins import guest_of
from cpu_tiers.nova.scheduler import refusal

options.register(filter_scheduler)
sizes = {{"vcpus": 4, "memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}}
spec = objects.RequestSpec(
    flavor=objects.Flavor(name="gold", **sizes, extra_specs={{}}),
    image=None,
    instance_uuid={SERVER!r},
    requested_destination=objects.Destination(cell=objects.CellMapping(uuid={SERVER!r}, id=2)),
)
refusal._gets_another_flavor = lambda *_: False  # there is no database
refusal.existing_server(spec, InvalidInput(()))

flavor = objects.Flavor(name="gold", **(sizes | {{"memory_mb": -1}}), extra_specs={{}})
server = objects.Instance(uuid={SERVER!r}, id=7, flavor=flavor, numa_topology=None, image_ref="")
server.system_metadata = {{}}
assert guest_of(server, None, "x86_64") is None
"""


def test_a_line_about_a_server_stands_in_the_log_as_a_line_of_nova(tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[DEFAULT]\nlog_file = {tmp_path / 'nova.log'}\n")
    subprocess.run([sys.executable, "-c", SERVICE, conf], check=True)
    lines = (tmp_path / "nova.log").read_text().splitlines()
    # By the default formats of oslo.log; "instance" stands before the message.
    about = r"\[None req-1 alice acme - - - -\] \[instance: " + SERVER + r"\] "
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ "
    scheduler = rf"{when}WARNING cpu_tiers\.nova\.scheduler\.refusal {about}"
    compute = rf"{when}ERROR cpu_tiers\.nova\.compute\.plugins {about}"
    assert any(re.match(f"{scheduler}The server is moved though", line) for line in lines), lines
    assert any(
        re.match(f"{compute}The server gets no elements of plugins", line) for line in lines
    ), lines


def loggers(module: Path) -> set[str]:
    """Return the packages from which a module has ``getLogger``."""
    names: dict[str, str] = {}
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}" for each in node.names}
    calls = re.findall(r"(\w+)\.getLogger\(", module.read_text())
    return {names[name] for name in calls}


def test_only_the_modules_of_nova_log_by_oslo_log() -> None:
    for module in OURS.rglob("*.py"):
        found = loggers(module)
        # The record of decisions is a logger of its own, with a queue of the standard library.
        is_novas = NOVA in module.parents and module.name != "decision_log.py"
        assert found <= {"oslo_log" if is_novas else "logging"}, module
