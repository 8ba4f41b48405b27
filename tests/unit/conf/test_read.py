from collections.abc import Callable
from pathlib import Path

import pytest

from cpu_tiers.conf.read import config_files, inventory_options, read_config
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory.contract import AllocationRatio, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / f"nova{len(list(tmp_path.iterdir()))}.conf"
        path.write_text(text)
        return str(path)

    return write


def test_every_option_of_inventories(write: Write) -> None:
    path = write(
        """
[DEFAULT]
cpu_allocation_ratio = 3.5
ram_allocation_ratio = 1.5
disk_allocation_ratio = 2.0
reserved_host_memory_mb = 1024
reserved_host_disk_mb = 2048
reserved_huge_pages = node:0,size:2048,count:64
reserved_huge_pages = node:1,size:1GB,count:1
reserved_huge_pages = node:1,size:2MiB,count:3
debug = an option of Nova's that we do not read
[compute]
cpu_shared_set = 0-3
cpu_dedicated_set = 4-7,^6
enable_numa_reporting_to_placement = true
[libvirt]
report_vcpu_shares = true
vcpu_share_multiplier = 50
"""
    )
    assert inventory_options(read_config([path])) == InventoryOptions(
        cpu_shared_set=CpuSet({0, 1, 2, 3}),
        cpu_dedicated_set=CpuSet({4, 5, 7}),
        cpu_allocation_ratio=AllocationRatio(value=3.5),
        ram_allocation_ratio=AllocationRatio(value=1.5),
        disk_allocation_ratio=AllocationRatio(value=2.0),
        reserved_host_memory_mb=1024,
        reserved_host_disk_mb=2048,
        report_vcpu_shares=True,
        vcpu_share_multiplier=50,
        reserved_huge_pages={0: {2048: 64}, 1: {1048576: 1, 2048: 3}},
        enable_numa_reporting_to_placement=True,
    )


def test_the_older_option_for_cpus(write: Write) -> None:
    text = "[DEFAULT]\nvcpu_pin_set = 2-15,^8\nreserved_host_cpus = 1\n"
    options = inventory_options(read_config([write(text)]))
    pinned = CpuSet({*range(2, 8), *range(9, 16)})
    assert options == InventoryOptions(vcpu_pin_set=pinned, reserved_host_cpus=1)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param(
            "[DEFAULT]\nvcpu_pin_set = 2\n[compute]\ncpu_dedicated_set = 4\n",
            "nova.conf, [DEFAULT] vcpu_pin_set and [compute] cpu_dedicated_set",
            id="dedicated CPUs beside vcpu_pin_set",
        ),
        pytest.param(
            "[DEFAULT]\nreserved_host_cpus = 2\n[compute]\ncpu_shared_set = 4\n",
            "nova.conf, [DEFAULT] reserved_host_cpus and [compute] cpu_shared_set",
            id="reserved CPUs beside a set",
        ),
    ],
)
def test_options_that_nova_refuses_in_combination(write: Write, text: str, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        inventory_options(read_config([write(text)]))
    assert [fault.where for fault in caught.value.faults] == [where]


def test_an_empty_file_gives_novas_defaults(write: Write) -> None:
    assert inventory_options(read_config([write("")])) == InventoryOptions()


def test_a_ratio_of_zero_means_the_initial_ratio(write: Write) -> None:
    text = "[DEFAULT]\ncpu_allocation_ratio = 0.0\ninitial_cpu_allocation_ratio = 8.0\n"
    options = inventory_options(read_config([write(text)]))
    assert options.cpu_allocation_ratio == AllocationRatio(value=8.0, is_initial=True)


def test_the_last_file_wins(write: Write) -> None:
    first = write("[libvirt]\nvcpu_share_multiplier = 10\nreport_vcpu_shares = true\n")
    second = write("[libvirt]\nvcpu_share_multiplier = 20\n")
    options = inventory_options(read_config([first, second]))
    assert (options.vcpu_share_multiplier, options.report_vcpu_shares) == (20, True)


def test_every_invalid_value_at_once(write: Write) -> None:
    path = write(
        "[DEFAULT]\ncpu_allocation_ratio = lots\nreserved_host_cpus = -1\n"
        "[libvirt]\nvcpu_share_multiplier = 10001\nreport_vcpu_shares = maybe\n"
        "[filter_scheduler]\nresource_provider_scoring = exciting\n"
    )
    with pytest.raises(InvalidInput) as caught:
        read_config([path])
    assert [fault.where for fault in caught.value.faults] == [
        "nova.conf, [DEFAULT] cpu_allocation_ratio",
        "nova.conf, [DEFAULT] reserved_host_cpus",
        "nova.conf, [filter_scheduler] resource_provider_scoring",
        "nova.conf, [libvirt] report_vcpu_shares",
        "nova.conf, [libvirt] vcpu_share_multiplier",
    ]


@pytest.mark.parametrize("ratio", ["nan", "inf"])
def test_a_ratio_is_a_number(write: Write, ratio: str) -> None:
    conf = read_config([write(f"[DEFAULT]\nram_allocation_ratio = {ratio}\n")])
    with pytest.raises(InvalidInput, match="ram_allocation_ratio"):
        inventory_options(conf)


def test_malformed_sets_both_at_once(write: Write) -> None:
    conf = read_config([write("[compute]\ncpu_shared_set = a\ncpu_dedicated_set = 3-1\n")])
    with pytest.raises(InvalidInput) as caught:
        inventory_options(conf)
    assert len(caught.value.faults) == 2


def test_files_that_cannot_be_read(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.conf"):
        read_config([str(tmp_path / "absent.conf")])
    with pytest.raises(InvalidInput, match="as INI"):
        read_config([write("[DEFAULT\n")])


def test_an_invalid_value_is_named_with_the_reason(write: Write) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_config([write("[DEFAULT]\nreserved_host_cpus = 2.5\n")])
    (fault,) = caught.value.faults
    assert "invalid literal for int" in fault.given


def test_a_reference_to_nothing(write: Write) -> None:
    with pytest.raises(InvalidInput, match=r"\[compute\] cpu_shared_set: .*nope"):
        read_config([write("[compute]\ncpu_shared_set = $nope\n")])


def test_a_folder_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bytes.conf").write_bytes(b"[DEFAULT]\n\xff = 1\n")
    for path in (tmp_path, tmp_path / "bytes.conf"):
        with pytest.raises(InvalidInput, match=f"--config-file {path}: cannot be read"):
            read_config([str(path)])


def test_without_file_arguments_the_files_of_nova_compute_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nova-compute.conf comes after nova.conf, as in the service."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".nova"
    folder.mkdir()
    nova, compute = folder / "nova.conf", folder / "nova-compute.conf"
    nova.write_text("[compute]\ncpu_shared_set = 0-3\ncpu_dedicated_set = 4\n")
    compute.write_text("[compute]\ncpu_dedicated_set = 5\n")
    assert config_files([]) == [str(nova), str(compute)]
    options = inventory_options(read_config([]))
    assert (options.cpu_shared_set, options.cpu_dedicated_set) == (
        CpuSet({0, 1, 2, 3}),
        CpuSet({5}),
    )
    assert config_files([str(nova)]) == [str(nova)]


def test_a_folder_comes_after_the_files(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "b.conf").write_text("[compute]\ncpu_shared_set = 1\n")
    nova = write("[compute]\ncpu_shared_set = 0\ncpu_dedicated_set = 3\n")
    options = inventory_options(read_config([nova], [str(folder)]))
    assert (options.cpu_shared_set, options.cpu_dedicated_set) == (CpuSet({1}), CpuSet({3}))
