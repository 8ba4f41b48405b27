"""What cpu-tiers keeps on objects of Nova while nova-scheduler looks for hosts."""

import copy
from types import SimpleNamespace

from nova import objects
from nova.scheduler.host_manager import HostState
from nova.scheduler.utils import ResourceRequest

from cpu_tiers.nova.notes import (
    HostNotes,
    QueryNotes,
    SearchNotes,
    host_of,
    note,
    query_of,
    search_of,
)


def test_a_copy_of_a_request_has_separate_notes() -> None:
    request = ResourceRequest()
    note(request, names=frozenset({"/traits/CUSTOM_A"}))
    duplicate = copy.copy(request)
    note(duplicate, is_unexplained=True)
    assert query_of(request) == QueryNotes(names=frozenset({"/traits/CUSTOM_A"}))
    assert query_of(duplicate) == QueryNotes(names=query_of(request).names, is_unexplained=True)


def test_an_object_of_nova_keeps_the_notes() -> None:
    spec, host = objects.RequestSpec(), HostState("one", "one", "cell")
    search_of(spec).has_warned = True
    host_of(host).left = {"one": {}}
    assert search_of(spec) == SearchNotes(has_warned=True)
    assert host_of(host) == HostNotes(left={"one": {}})
    assert vars(host)["cpu_tiers"] is host_of(host)


def test_a_look_leaves_a_request_unchanged() -> None:
    request = SimpleNamespace()
    assert query_of(request) == QueryNotes()
    assert vars(request) == {}


def test_an_object_without_attributes_keeps_no_notes() -> None:
    """Tests of Nova weigh hosts for a dictionary."""
    assert search_of({}) == SearchNotes()
