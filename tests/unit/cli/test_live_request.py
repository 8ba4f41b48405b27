"""Servers and flavors of the cloud as requests; the answers of the services stand here."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from cpu_tiers.cli import live_request
from cpu_tiers.cli.live_request import (
    add_request_arguments,
    find_flavor,
    find_server,
    queries_of,
    server_of,
)
from cpu_tiers.compute_api.servers import ReadServer
from cpu_tiers.conf.read import read_config
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor

SIZES = {"vcpus": 2, "ram": 512, "disk": 5}
SPECS = {"extra_specs": {"hw:numa_nodes": "1"}}
PORT = {
    "id": "p",
    "resource_request": {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 300}},
    "binding:profile": {},
}


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cfg.ConfigOpts:
    @contextmanager
    def opened(_: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(live_request, "opened_adapter", opened)
    (tmp_path / "nova.conf").touch()
    return read_config([str(tmp_path / "nova.conf")])


def query_of(conf: cfg.ConfigOpts, *arguments: str, server: ReadServer | None = None) -> str:
    parser = ArgumentParser()
    add_request_arguments(parser)
    parsed = parser.parse_args(arguments)
    request = server_of(parsed, conf, Flavor(name="f", vcpus=1, memory_mb=1))
    if server:
        request = find_server(conf, "uuid", request)
    return queries_of(parsed, conf, request).first[0].to_query_string()


def test_a_server_of_the_cloud(conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch) -> None:
    flavor = {"original_name": "gold", "ephemeral": 1, "swap": 1024, **SIZES, **SPECS}
    image = {"id": "i", "name": "", "trait:HW_CPU_X86_AVX2": "required", "size": 7}
    server = ReadServer("web", flavor, image, (PORT,))
    monkeypatch.setattr(live_request, "read_server", lambda *_: server)
    # 5 + 1 + 1 GB of disk. nova-scheduler requests no NUMA nodes while its option is not set.
    assert query_of(conf, server=server) == (
        "resources=DISK_GB:7,MEMORY_MB:512,VCPU:2&required=HW_CPU_X86_AVX2"
        "&resourcesp=NET_BW_EGR_KILOBIT_PER_SEC:300&root_required=!COMPUTE_STATUS_DISABLED"
    )
    from_volume = server._replace(image=None, ports=())
    monkeypatch.setattr(live_request, "read_server", lambda *_: from_volume)
    assert query_of(conf, server=from_volume).startswith(
        "resources=DISK_GB:2,MEMORY_MB:512,VCPU:2&root"
    )


def test_flavors_of_the_cloud(conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch) -> None:
    flavors: list[dict[str, Any]] = [
        {
            "id": "gold",
            "name": "seven",
            "OS-FLV-EXT-DATA:ephemeral": 3,
            **SIZES,
            "extra_specs": {},
        },
        {"id": "7", "name": "gold", **SIZES, **SPECS},
    ]
    monkeypatch.setattr(live_request, "nova_adapter", lambda _: None)
    monkeypatch.setattr(live_request, "read_novas_flavors", lambda _: iter(flavors))
    assert find_flavor(conf, "gold").extra_specs == SPECS["extra_specs"]  # the name comes first
    assert find_flavor(conf, "7").name == "gold"
    assert find_flavor(conf, "seven").ephemeral_gb == 3
    with pytest.raises(InvalidInput, match=r"--flavor: sevn: .*did you mean seven"):
        find_flavor(conf, "sevn")


def test_options_and_arguments_of_the_request(conf: cfg.ConfigOpts, tmp_path: Path) -> None:
    aggregates = ("--aggregate", "a,b", "--aggregate", "c")
    assert "&member_of=in:a,b&member_of=in:c&" in query_of(conf, *aggregates)
    (tmp_path / "nova.conf").write_text("[filter_scheduler]\nquery_placement_for_numa = true\n")
    on = read_config([str(tmp_path / "nova.conf")])
    assert "HW_NUMA_ROOT" in query_of(on)
    assert "HW_NUMA_ROOT" not in query_of(on, "--no-numa")


@pytest.mark.parametrize("text", ["", "a,", "a&b"])
def test_no_uuids(conf: cfg.ConfigOpts, text: str) -> None:
    with pytest.raises(SystemExit):
        query_of(conf, "--aggregate", text)
