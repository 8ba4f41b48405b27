import errno
from pathlib import Path

import pytest

from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import (
    HOST_PRESSURE,
    Stalls,
    find_hierarchy,
    read_pressure,
    read_stalls,
)
from tests.unit.cgroup.layouts import Kind, Layout

V1 = "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n"
V2 = "usage_usec 1\nuser_usec 1\nnr_throttled 3\nthrottled_usec 2500000\n"
PRESSURE = (
    "some avg10=14.88 avg60=56.67 avg300=42.86 total=1500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=700000\n"
)


@pytest.mark.parametrize(
    ("kind", "pressure"),
    [("v1", None), ("hybrid systemd", None), ("v2", 1.5), ("v2 systemd", 1.5)],
)
def test_a_guest_and_the_limited_cgroups_of_the_guest(
    tmp_path: Path, kind: Kind, pressure: float | None
) -> None:
    layout = Layout(tmp_path, kind)
    for path in ("/m/guest", "/m/guest/vcpu0", "/m/guest/vcpu1"):
        layout.file(path, "cpu.stat", "cpu.stat", V2 if layout.v2 else V1)
    layout.file("/m/guest", "cpu.pressure", "cpu.pressure", PRESSURE)
    files = Files(tmp_path)
    hierarchy = find_hierarchy(files)
    # 2.5 s of the guest and 2.5 s of vCPU 0; vCPU 1 has no quota of its own
    stalls = read_stalls(files, hierarchy, "/m/guest", ("/m/guest/vcpu0",))
    assert stalls == Stalls(throttled=5.0, pressure=pressure)
    assert read_stalls(files, hierarchy, "/m/ended", ()) == Stalls(throttled=0.0, pressure=None)


def test_pressure_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(tmp_path)
    assert read_pressure(files, HOST_PRESSURE) is None  # a kernel without PSI
    (tmp_path / "proc" / "pressure").mkdir(parents=True)
    (tmp_path / "proc" / "pressure" / "cpu").write_text(PRESSURE)
    assert read_pressure(files, HOST_PRESSURE) == 1.5
    (tmp_path / "proc" / "pressure" / "cpu").write_text("")
    assert read_pressure(files, HOST_PRESSURE) is None

    def fail(number: int) -> object:
        def read(_: str) -> str:
            raise OSError(number, "as the kernel says")

        return read

    monkeypatch.setattr(files, "read", fail(errno.EOPNOTSUPP))
    assert read_pressure(files, HOST_PRESSURE) is None  # the kernel was started with psi=0
    monkeypatch.setattr(files, "read", fail(errno.EACCES))
    with pytest.raises(OSError, match="as the kernel says"):
        read_pressure(files, HOST_PRESSURE)
