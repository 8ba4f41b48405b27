"""A server that files describe, and when its query requests NUMA nodes."""

from argparse import ArgumentParser
from pathlib import Path

import pytest

from cpu_tiers.conf.read import read_config
from cpu_tiers.tools.frame.server_arguments import add_server_arguments, read_server
from cpu_tiers.tools.frame.server_request import add_numa_argument, as_in_spec


@pytest.mark.parametrize(
    ("option", "arguments", "wanted"),
    [
        pytest.param("", [], True, id="a server with NUMA nodes"),
        pytest.param("query_placement_for_numa = false", [], False, id="the option"),
        pytest.param("query_placement_for_numa = false", ["--numa"], True, id="the argument"),
        pytest.param(
            "query_placement_for_numa = true", ["--no-numa"], False, id="the opposite argument"
        ),
    ],
)
def test_numa_nodes(tmp_path: Path, option: str, arguments: list[str], wanted: bool) -> None:
    flavor, image, conf = (tmp_path / name for name in ("f.json", "i.json", "nova.conf"))
    flavor.write_text('{"name": "f", "vcpus": 2, "ram": 512}')
    image.write_text('{"name": "i", "properties": {"hw_numa_nodes": "2"}}')
    conf.write_text(f"[filter_scheduler]\n{option}\n")
    parser = ArgumentParser()
    add_server_arguments(parser)
    add_numa_argument(parser)
    parsed = parser.parse_args([str(flavor), "--image", str(image), *arguments])
    server = read_server(parsed)
    assert as_in_spec(parsed, read_config([str(conf)]), server).query_numa is wanted
