"""What a decision says of hosts, as JSON."""

from types import SimpleNamespace

from cpu_tiers.nova.scheduler.reasons.decisions import Decision, Round, named

HOSTS = [SimpleNamespace(host=f"host{number}") for number in range(12)]


def test_ten_hosts_are_named_of_all() -> None:
    assert named(HOSTS[:2]) == {"number": 2, "names": ["host0", "host1"]}
    assert named(HOSTS) == {"number": 12, "names": [f"host{number}" for number in range(10)]}
    assert named(()) == {"number": 0, "names": []}


def test_a_filter_removes_hosts_and_weighers_add_up() -> None:
    own = Round(server="s")
    own.add_filter("ComputeFilter", HOSTS[:3], HOSTS[1:3])
    assert own.filters == [
        {"filter": "ComputeFilter", "left": 2, "removed": {"number": 1, "names": ["host0"]}}
    ]
    weighed = [SimpleNamespace(obj=HOSTS[2], weight=1.5), SimpleNamespace(obj=HOSTS[1], weight=0)]
    parts = {
        "A": {id(HOSTS[1]): 0.0, id(HOSTS[2]): 1.0},
        "B": {id(HOSTS[1]): 0.0, id(HOSTS[2]): 0.5},
    }
    own.add_weights(weighed, parts)
    assert own.weights == [
        {"host": "host2", "weight": 1.5, "parts": {"A": 1.0, "B": 0.5}},
        {"host": "host1", "weight": 0, "parts": {"A": 0.0, "B": 0.0}},
    ]


def test_the_document() -> None:
    decision = Decision(request_id="req-1", servers=("s", "t"), flavor="gold")
    selections = [[SimpleNamespace(service_host="a"), SimpleNamespace(service_host="b")]]
    document = decision.document(selections, None)
    assert document["selected"] == [{"host": "a", "alternates": ["b"]}]
    assert (document["fault"], document["rounds"], document["queries"]) == (None, [], [])
    assert decision.document((), "No valid host was found.")["fault"]
