"""What an answer about a server does not know, as lines of the log."""

from pathlib import Path
from typing import NoReturn

import pytest
from oslo_config import cfg

from cpu_tiers.conf.read import read_config
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.service_states import ServiceStates
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.notes_on_answers import (
    tell_left_out,
    tell_notes_on_weighers,
    tell_unknown_additions,
    tell_unknown_states,
    unknown_additions,
)
from tests.unit.compute_api.catalog import Catalog


def nobody() -> NoReturn:
    pytest.fail("Placement is asked")


def conf_of(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    path = tmp_path / "nova.conf"
    path.write_text(text)
    return read_config([str(path)])


def test_options_by_which_nova_requests_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = conf_of(
        tmp_path,
        "[scheduler]\nenable_isolated_aggregate_filtering = true\n"
        "query_placement_for_routed_network_aggregates = true\n",
    )
    # In the order of the list of these options, not of nova.conf.
    routed, isolated = (
        "[scheduler] query_placement_for_routed_network_aggregates",
        "[scheduler] enable_isolated_aggregate_filtering",
    )
    assert unknown_additions(conf) == [routed, isolated]
    of_volume, services = Image("of the volume"), Catalog({}).services
    assert unknown_additions(conf, CloudSource(services, nobody, None)) == [routed, isolated]
    on = conf_of(tmp_path, "[scheduler]\nquery_placement_for_image_type_support = true\n")
    assert unknown_additions(on) == ["[scheduler] query_placement_for_image_type_support"]
    assert unknown_additions(on, None, of_volume) == []
    tell_unknown_additions(conf)
    (message,) = caplog.messages
    assert f"what this command does not know: {routed}, {isolated} of nova.conf is on." in message


def test_a_note_about_what_is_unknown_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flavor = Flavor(name="gold", vcpus=1, memory_mb=1)
    conf = conf_of(tmp_path, "[DEFAULT]\n")
    tell_left_out(flavor, ())
    tell_unknown_additions(conf)
    tell_unknown_states(ServiceStates())
    tell_notes_on_weighers(conf)
    assert caplog.messages == []
    tell_left_out(flavor, ["accel:device_profile gpu"])
    tell_unknown_states(ServiceStates(unknown="Nova does not answer"))
    tell_notes_on_weighers(conf, {"trait:HW_CPU_X86_AVX2": "preferred"})
    left_out, states, weighers = caplog.messages
    assert left_out.startswith("flavor gold: hosts may be excluded by what the command does not")
    assert ": accel:device_profile gpu. " in left_out
    assert states.endswith("are counted, too: Nova does not answer")
    assert "nova-scheduler does not load the weigher of cpu-tiers" in weighers
