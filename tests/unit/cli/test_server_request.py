"""The request of a server: files, flavors and servers of the cloud, and options of nova.conf."""

from argparse import ArgumentParser
from pathlib import Path
from typing import NoReturn

import pytest
from oslo_config import cfg

from cpu_tiers.conf.read import read_config
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.server_arguments import add_source_arguments
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    queries_of,
    read_source,
)
from cpu_tiers.tools.http.services import Services
from tests.unit.cli.named_objects import CLOUD, PORT
from tests.unit.compute_api.catalog import Catalog

FLAVOR = '{"name": "f", "vcpus": 1, "ram": 1}'


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    (tmp_path / "nova.conf").touch()
    (tmp_path / "f.json").write_text(FLAVOR)
    return read_config([str(tmp_path / "nova.conf")])


def nobody() -> NoReturn:
    pytest.fail("the cloud is asked")


def query_of(conf: cfg.ConfigOpts, *arguments: str, cloud: Catalog | None = None) -> str:
    parser = ArgumentParser()
    add_source_arguments(parser)
    add_request_arguments(parser)
    add_aggregate_argument(parser)
    parsed = parser.parse_args(arguments)

    def services() -> Services:
        return cloud.services() if cloud else nobody()

    source = CloudSource(services, nobody, None)
    server = read_source(parsed, conf, source)
    return queries_of(conf, server, parsed.aggregate, source).queries[0].to_query_string()


def test_a_server_of_the_cloud(conf: cfg.ConfigOpts) -> None:
    # 5 + 1 + 1 GB of disk. nova-scheduler requests no NUMA nodes while its option is not set.
    assert query_of(conf, "--server", "s", cloud=Catalog(CLOUD)) == (
        "resources=DISK_GB:7,MEMORY_MB:512,VCPU:2&required=HW_CPU_X86_AVX2"
        "&resourcesp=NET_BW_EGR_KILOBIT_PER_SEC:300&root_required=!COMPUTE_STATUS_DISABLED"
    )


def test_names_of_a_flavor_an_image_and_a_port(conf: cfg.ConfigOpts) -> None:
    cloud = Catalog({**CLOUD, ("network", "/v2.0/ports?name=fast"): {"ports": [PORT]}})
    arguments = ("--flavor", "seven", "--image", "i", "--port", "fast")
    # 5 + 3 GB of disk
    assert query_of(conf, *arguments, cloud=cloud) == (
        "resources=DISK_GB:8,MEMORY_MB:512,VCPU:2&required=HW_CPU_X86_AVX2"
        "&resourcesp=NET_BW_EGR_KILOBIT_PER_SEC:300&root_required=!COMPUTE_STATUS_DISABLED"
    )


def test_a_server_from_a_volume_requests_no_root_disk(conf: cfg.ConfigOpts) -> None:
    arguments = ("--flavor", "seven", "--from-volume")
    # Of 5 + 3 GB, the 5 GB of the root disk are in the volume.
    query = query_of(conf, *arguments, cloud=Catalog(CLOUD))
    assert query.startswith("resources=DISK_GB:3,MEMORY_MB:512,VCPU:2&")


def test_a_request_with_aggregates_and_types_of_images(tmp_path: Path) -> None:
    metadata = {"trait:HW_CPU_X86_AVX2": "required"}
    rack = {"uuid": "u", "name": "rack", "hosts": [], "metadata": metadata}
    cloud = Catalog(
        {
            **CLOUD,
            ("compute", "/os-aggregates"): {"aggregates": [rack]},
            ("compute", "/os-hypervisors/detail?limit=1000"): {"hypervisors": []},
        }
    )
    (tmp_path / "nova.conf").write_text(
        "[scheduler]\nenable_isolated_aggregate_filtering = true\n"
        "query_placement_for_image_type_support = true\n"
    )
    conf = read_config([str(tmp_path / "nova.conf")])
    without, image = ("--flavor", "seven"), ("--image", "i")  # which requires the trait
    assert "&member_of=!in:u&" in query_of(conf, *without, cloud=cloud)
    assert "COMPUTE_IMAGE_TYPE" not in query_of(conf, *without, cloud=cloud)
    query = query_of(conf, *without, *image, cloud=cloud)
    assert "COMPUTE_IMAGE_TYPE_QCOW2" in query
    assert "member_of" not in query
    from_volume = query_of(conf, *without, *image, "--from-volume", cloud=cloud)
    assert "COMPUTE_IMAGE_TYPE" not in from_volume


def test_options_and_arguments_of_the_request(conf: cfg.ConfigOpts, tmp_path: Path) -> None:
    file = str(tmp_path / "f.json")
    aggregates = ("--aggregate", "a,b", "--aggregate", "c")
    assert "&member_of=in:a,b&member_of=in:c&" in query_of(conf, file, *aggregates)
    (tmp_path / "nova.conf").write_text("[filter_scheduler]\nquery_placement_for_numa = true\n")
    on = read_config([str(tmp_path / "nova.conf")])
    assert "HW_NUMA_ROOT" in query_of(on, file)
    assert "HW_NUMA_ROOT" not in query_of(on, file, "--no-numa")


@pytest.mark.parametrize("text", ["", "a,", " ,a"])
def test_an_aggregate_without_a_name(conf: cfg.ConfigOpts, text: str) -> None:
    with pytest.raises(SystemExit):
        query_of(conf, "f.json", "--aggregate", text)


@pytest.mark.parametrize(
    "arguments", [[], ["f.json", "--flavor", "f"], ["--flavor=f", "--server=s"]]
)
def test_a_second_source_of_the_flavor_is_a_usage_error(
    conf: cfg.ConfigOpts, arguments: list[str]
) -> None:
    with pytest.raises(SystemExit):
        query_of(conf, *arguments)
