"""Which providers serve a request group, on a cloud whose candidates are worked out by hand."""

from collections.abc import Mapping

import pytest

from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import SimulatedCloud
from tests.unit.cloud_model.clouds import CARDS, group, providers_of, query

EITHER = frozenset([frozenset(["FAST", "RED"])])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            query(group(VCPU=1)), [{"": "disks"}, {"": "host"}, {"": "plain"}], id="flat hosts"
        ),
        pytest.param(
            query(group(VCPU=1, CARD=1)),
            [{"": "host+host-c1"}, {"": "host+host-c2"}],
            id="providers of a tree serve the unsuffixed group together",
        ),
        pytest.param(
            query(group("", "FAST", VCPU=1, CARD=1)),
            [{"": "host+host-c2"}],
            id="the providers have the traits together",
        ),
        pytest.param(
            query(group("", "FAST", VCPU=1)), [], id="a provider that serves nothing has none"
        ),
        pytest.param(
            query(group(VCPU=1, CARD=1)._replace(any_of=EITHER)),
            [{"": "host+host-c2"}],
            id="one trait of a set",
        ),
        pytest.param(
            query(group(CARD=1)._replace(forbidden=frozenset(["FAST"]))),
            [{"": "host-c1"}],
            id="a forbidden trait",
        ),
        pytest.param(
            query(group("1", VCPU=1, CARD=1)), [], id="a single provider serves a suffixed group"
        ),
        pytest.param(
            query(group("1", "FAST", CARD=1)), [{"1": "host-c2"}], id="the traits of the provider"
        ),
        pytest.param(
            query(group(VCPU=1, DISK=1)), [{"": "disks+pool"}], id="a pool serves its aggregate"
        ),
        pytest.param(
            query(group(VCPU=1, DISK=1)._replace(in_tree="disks")),
            [],
            id="but not a host that is named",
        ),
        pytest.param(
            query(group(VCPU=1)._replace(in_tree="host-c1")), [{"": "host"}], id="in_tree"
        ),
        pytest.param(query(group(VCPU=1)._replace(in_tree="x")), [], id="an unknown tree"),
        pytest.param(
            query(group(VCPU=1)._replace(member_of=frozenset([frozenset("ab")]))),
            [{"": "disks"}],
            id="member_of",
        ),
        pytest.param(
            query(group(VCPU=1)._replace(member_of=frozenset([frozenset("a"), frozenset("b")]))),
            [],
            id="member_of each set",
        ),
        pytest.param(
            query(RequestGroup(suffix="1", forbidden=frozenset(["X"]))),
            [],
            id="a group that only forbids finds no provider in Placement",
        ),
    ],
)
def test_providers(asked: CandidateQuery, expected: list[Mapping[str, str]]) -> None:
    assert providers_of(SimulatedCloud(CARDS).candidates(asked)) == expected
