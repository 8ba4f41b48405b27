"""What the moves of a plan copy, and how long that takes."""

from cpu_tiers.tools.plan.copying import copied, copied_text

MOVE = {"live": True, "settles": False, "memory_mb": 4096, "disk_gb": 0}


def test_what_is_copied() -> None:
    cold = {**MOVE, "live": False, "settles": False, "disk_gb": 10}
    copy = copied([MOVE, {**MOVE, "memory_mb": 2048}, cold], 100)
    # live 40.96 and 20.48 s, cold 10 GiB: 102.4 s; 41 + 21 + 103 = 165 s
    assert copy == {"memory_mb": 6144, "disk_gb": 10, "minutes": 3, "rate_mib": 100}
    assert copied_text(copy) == (
        "6.0 GiB of memory to copy: 3 minutes at 100 MiB/s; beside this, 10 GiB of disks if the"
        " hosts share no storage."
    )
    assert copied_text(copied([], 100)) == ""
