"""The options of Nova that the commands read: defaults, and values in a file."""

from pathlib import Path

from cpu_tiers.conf.read import NOVAS_OPTIONS, read_config


def test_options_of_the_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(
        "[filter_scheduler]\nram_weight_multiplier = -1.5\n"
        "[scheduler]\nimage_metadata_prefilter = true\n"
        "[workarounds]\ndisable_fallback_pcpu_query = true\n"
    )
    conf = read_config([str(path)])
    multipliers = [conf.filter_scheduler[f"{name}_weight_multiplier"] for name in WEIGHERS]
    assert multipliers == [-1.5, 1.0, 1.0]  # the defaults of Nova
    assert conf.workarounds.disable_fallback_pcpu_query
    set_options = {name: conf.scheduler[name] for name in conf.scheduler}
    assert [name for name, value in set_options.items() if value] == ["image_metadata_prefilter"]


WEIGHERS = ("ram", "cpu", "disk")


def test_each_option_stands_once() -> None:
    names = [(group, option.name) for group, options in NOVAS_OPTIONS for option in options]
    assert len(names) == len(set(names))
