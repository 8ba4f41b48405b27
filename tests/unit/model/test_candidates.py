from typing import Any

from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.tools.placement.candidate_answer import read_answer
from tests.unit.placement.answers import ANSWER, edited


def summary(root: str, classes: str, *traits: str) -> dict[str, Any]:
    return {
        "resources": {name: {"capacity": 8, "used": 0} for name in classes.split()},
        "traits": list(traits),
        "parent_provider_uuid": None,
        "root_provider_uuid": root,
    }


SHARES = "MISC_SHARES_VIA_AGGREGATE"


def test_hosts_are_trees_that_a_server_can_run_on() -> None:
    summaries = {
        "host": summary("host", "VCPU MEMORY_MB DISK_GB"),
        "pool": summary("pool", "DISK_GB", SHARES),
        "sharer": summary("sharer", "DISK_GB", SHARES),
        "sharer_numa": summary("sharer", "PCPU"),
        "memory only": summary("memory only", "MEMORY_MB", SHARES),
        "storage": summary("storage", ""),
        "storage_array": summary("storage", "DISK_GB", SHARES),
        "baremetal": summary("baremetal", "CUSTOM_BAREMETAL"),
    }
    answer = CandidatesAnswer(allocation_requests=(), provider_summaries=summaries)
    assert answer.hosts() == ("host", "sharer", "memory only", "baremetal")


def test_the_host_of_a_candidate() -> None:
    """The disk of a host may come from a pool, or from another host that shares its disk."""
    summaries = {
        "host": summary("host", "VCPU MEMORY_MB"),
        "a sharer": summary("a sharer", "VCPU DISK_GB", SHARES),
        "pool": summary("pool", "DISK_GB", SHARES),
    }
    on_host, on_pool, shared = (
        AllocationRequest(allocations={disk: {"DISK_GB": 1}, cpus: {"VCPU": 1}})
        for disk, cpus in (("a sharer", "host"), ("pool", "host"), ("pool", "a sharer"))
    )
    only_disk = AllocationRequest(allocations={"pool": {"DISK_GB": 1}})
    answer = CandidatesAnswer(
        allocation_requests=(on_host, on_pool, shared, only_disk), provider_summaries=summaries
    )
    assert answer.by_host() == {"host": [on_host, on_pool], "a sharer": [shared]}


def test_a_class_that_the_summary_lacks_decides_nothing() -> None:
    # In nova-scheduler, where answers are not checked. Only Placement knows the capacity.
    body = edited("provider_summaries/child/resources", {"PCPU": {"capacity": 8, "used": 0}})
    answer = CandidatesAnswer.unchecked(body["allocation_requests"], body["provider_summaries"])
    (way,) = answer.allocation_requests
    after = answer.after(way)
    assert after.allocation_requests == (way,)
    assert after.provider_summaries["child"] == answer.provider_summaries["child"]
    assert after.provider_summaries["root"]["resources"]["MEMORY_MB"]["used"] == 512


def test_the_candidates_left_after_a_claim() -> None:
    answer = CandidatesAnswer.unchecked(
        ANSWER["allocation_requests"], ANSWER["provider_summaries"]
    )
    assert answer == read_answer(ANSWER, where="answer")
    (way,) = answer.allocation_requests
    # 1024 MiB take two servers of 512, 8 - 3 VCPU two of 2
    once = answer.after(way)
    assert once.allocation_requests == (way,)
    assert once.provider_summaries["child"]["resources"] == {"VCPU": {"capacity": 8, "used": 5}}
    assert once.after(way).allocation_requests == ()
    assert answer.provider_summaries == ANSWER["provider_summaries"]
    assert ANSWER["provider_summaries"]["child"]["resources"]["VCPU"]["used"] == 3
