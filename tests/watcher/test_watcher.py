"""An audit of a real Watcher, from its parameters to the action plan in its database."""

import json
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import fixtures
from oslo_config import cfg
from watcher import notifications, objects
from watcher.applier.action_plan.default import DefaultActionPlanHandler
from watcher.applier.loading.default import DefaultActionLoader
from watcher.common import exception, nova_helper
from watcher.common.utils import Draft4Validator
from watcher.decision_engine.audit.oneshot import OneShotAuditHandler
from watcher.decision_engine.sync import Syncer
from watcher.tests.unit.db.base import DbTestCase
from watcher.tests.unit.objects import utils

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer, SnapshotServers
from cpu_tiers.tools.watcher import NAME, PlanStrategy, arguments_of
from tests.unit.cloud_model.clouds import provider

SMALL, LARGE = Flavor(name="small", vcpus=4, memory_mb=16), Flavor(name="l", vcpus=8, memory_mb=1)
UUIDS = [f"{n}0000000-0000-4000-8000-000000000000" for n in range(1, 4)]


def snapshot() -> Snapshot:
    """Return hosts of 8, 8 and 4 CPUs: a and b of 4 on the first, c of 4 on the second."""
    places = {UUIDS[0]: "cn0", UUIDS[1]: "cn0", UUIDS[2]: "cn1"}
    return Snapshot(
        providers=tuple(
            provider(name, None, VCPU=cpus, MEMORY_MB=99)
            for name, cpus in (("cn0", 8), ("cn1", 8), ("cn2", 4))
        ),
        consumers={uuid: {host: {"VCPU": 4, "MEMORY_MB": 16}} for uuid, host in places.items()},
        flavors=(SMALL, LARGE),
        servers=SnapshotServers(
            servers={
                uuid: SnapshotServer(name=name, flavor=SMALL, state="ACTIVE")
                for uuid, name in zip(UUIDS, "abc", strict=True)
            },
            services={"cn0": "compute0", "cn1": "compute1", "cn2": "compute2"},
        ),
    )


class Nova:
    """What Watcher asks its client of Nova for; a migration of a server may fail.

    :param hosts: the host of each server, as Nova's API names hosts.
    """

    def __init__(self, hosts: dict[str, str], fails: str = "") -> None:
        self.hosts, self.fails = hosts, fails
        self.asked: list[str] = []

    def find_instance(self, uuid: str) -> Any:
        return SimpleNamespace(host=self.hosts[uuid], status="ACTIVE")

    def get_compute_node_by_hostname(self, name: str) -> Any:
        if name not in ("compute0", "compute1", "compute2"):
            raise exception.ComputeNodeNotFound(name=name)
        return SimpleNamespace(status="enabled")

    def live_migrate_instance(self, instance_id: str, dest_hostname: str) -> bool:
        self.asked.append(instance_id)
        if instance_id == self.fails:
            return False
        self.hosts[instance_id] = dest_hostname
        return True


class TestAudit(DbTestCase):
    """The decision engine of Watcher with SQLite; the strategy plans on a snapshot."""

    def setUp(self) -> None:
        super().setUp()
        for name in ("audit", "action_plan", "action"):
            self.useFixture(fixtures.MockPatchObject(notifications, name, autospec=True))
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        (folder / "nova.conf").write_text("[DEFAULT]\n")
        (folder / "cloud.json").write_text(json.dumps(snapshot().to_json()))
        group = self.group = f"watcher_strategies.{NAME}"
        cfg.CONF.register_opts(PlanStrategy.get_config_opts(), group=group)
        arguments = ["--snapshot", str(folder / "cloud.json")]
        cfg.CONF.set_override("config_files", [str(folder / "nova.conf")], group=group)
        cfg.CONF.set_override("arguments", arguments, group=group)
        Syncer().sync()  # as watcher-sync: the goals and strategies of all entry points
        self.goal = objects.Goal.get_by_name(self.context, NAME)
        self.strategy = objects.Strategy.get_by_name(self.context, NAME)

    def audit(self, **parameters: Any) -> tuple[Any, list[Any]]:
        """Run an audit; return it with the actions of its action plan."""
        Draft4Validator(self.strategy.parameters_spec).validate(parameters)  # as watcher-api
        audit = utils.create_test_audit(
            self.context,
            goal_id=self.goal.id,
            strategy_id=self.strategy.id,
            goal=self.goal,
            parameters=parameters,
            state=objects.audit.State.PENDING,
        )
        with mock.patch("watcher.common.clients.OpenStackClients"):
            OneShotAuditHandler().execute(audit, self.context)
        return audit, objects.Action.list(self.context)

    def test_a_drain(self) -> None:
        audit, actions = self.audit(question="drain", hosts=["cn0"])
        assert audit.state == "SUCCEEDED"
        (plan,) = objects.ActionPlan.list(self.context)
        assert plan.state == "RECOMMENDED"
        assert {action.action_type for action in actions} == {"migrate"}
        moves = {
            (values["resource_id"], values["source_node"], values["destination_node"])
            for action in actions
            for values in [action.input_parameters]
        }
        assert moves in (
            {(UUIDS[0], "compute0", "compute1"), (UUIDS[1], "compute0", "compute2")},
            {(UUIDS[0], "compute0", "compute2"), (UUIDS[1], "compute0", "compute1")},
        )
        for action in actions:  # by the schema of Watcher's own action
            loaded = DefaultActionLoader().load(name="migrate", osc=mock.Mock())
            loaded.input_parameters = action.input_parameters
            loaded.validate_parameters()

    def carry_out(self, nova: Nova) -> tuple[str, dict[str, str]]:
        """Have Watcher start the action plan; return its state, and those of its actions."""
        (plan,) = objects.ActionPlan.list(self.context)
        with mock.patch.object(nova_helper, "NovaHelper", return_value=nova):
            DefaultActionPlanHandler(self.context, mock.Mock(), plan.uuid).execute()
        (plan,) = objects.ActionPlan.list(self.context)
        actions = objects.Action.list(self.context)
        return plan.state, {one.input_parameters["resource_id"]: one.state for one in actions}

    def test_an_action_plan_is_carried_out(self) -> None:
        """Watcher skips a server that is not on the source of its action: a name of Nova's API."""
        self.audit(question="drain", hosts=["cn0"])
        nova = Nova(dict.fromkeys(UUIDS[:2], "compute0"))
        ended = dict.fromkeys(UUIDS[:2], "SUCCEEDED")
        assert self.carry_out(nova) == ("SUCCEEDED", ended)
        assert sorted(nova.hosts.values()) == ["compute1", "compute2"]

    def test_an_action_fails_half_way(self) -> None:
        """Watcher goes on: Nova is asked for the third move, and refuses it without room."""
        answer = {"verdict": "", "moves": [_move(0, []), _move(1, [1]), _move(2, [2])]}
        with mock.patch.object(PlanStrategy, "_answer", return_value=answer):
            self.audit(question="relieve")
        nova = Nova(dict.fromkeys(UUIDS, "compute0"), fails=UUIDS[1])
        states = dict(zip(UUIDS, ("SUCCEEDED", "FAILED", "SUCCEEDED"), strict=True))
        assert self.carry_out(nova) == ("FAILED", states)
        assert nova.asked == UUIDS
        assert nova.hosts == dict(zip(UUIDS, ("compute1", "compute0", "compute1"), strict=True))

    def test_room(self) -> None:
        # For a server of 8 CPUs c leaves cn1 for cn2: one move, where a and b would be two.
        _, (action,) = self.audit(question="room", flavor="l")
        assert action.input_parameters["resource_id"] == UUIDS[2]
        assert action.parents == []

    def test_an_action_waits_for_what_must_be_done_before(self) -> None:
        answer = {"verdict": "", "moves": [_move(0, []), _move(1, [1]), _move(2, [1, 2])]}
        with mock.patch.object(PlanStrategy, "_answer", return_value=answer):
            _, actions = self.audit(question="relieve")
        by_server = {action.input_parameters["resource_id"]: action for action in actions}
        first, second, third = (by_server[uuid] for uuid in UUIDS)
        assert (first.parents, second.parents) == ([], [first.uuid])
        assert third.parents == [first.uuid, second.uuid]

    def test_an_action_waits_until_nova_scheduler_has_heard(self) -> None:
        """The second move waits for the first, and then 130 seconds; the third for both."""
        moves = [_move(0, []), {**_move(1, [1]), "settles": True}, _move(2, [1, 2])]
        with mock.patch.object(
            PlanStrategy, "_answer", return_value={"verdict": "", "moves": moves}
        ):
            _, actions = self.audit(question="relieve")
        first, sleep, second, third = actions
        assert (sleep.action_type, sleep.input_parameters) == ("sleep", {"duration": 130})
        assert (sleep.parents, second.parents) == ([first.uuid], [sleep.uuid])
        assert third.parents == [first.uuid, second.uuid]
        loaded = DefaultActionLoader().load(name="sleep", osc=mock.Mock())
        loaded.input_parameters = sleep.input_parameters
        loaded.validate_parameters()

    def test_an_action_without_the_name_of_its_host(self) -> None:
        answer = {"verdict": "", "moves": [{**_move(0, []), "named": False}]}
        with mock.patch.object(PlanStrategy, "_answer", return_value=answer):
            _, (action,) = self.audit(question="relieve")
        assert "destination_node" not in action.input_parameters

    def test_an_error_fails_the_audit(self) -> None:
        audit, actions = self.audit(question="drain", hosts=["cn9"])
        assert (audit.state, actions) == ("FAILED", [])

    def test_a_plan_that_takes_too_long(self) -> None:
        never_written = Path(self.useFixture(fixtures.TempDir()).path, "nova.conf")
        os.mkfifo(never_written)
        cfg.CONF.set_override("config_files", [str(never_written)], group=self.group)
        cfg.CONF.set_override("timeout", 1, group=self.group)
        log = self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        audit, actions = self.audit(question="drain", hosts=["cn0"])
        assert (audit.state, actions) == ("FAILED", [])
        assert "no answer within 1 seconds; raise timeout" in log.output


def _move(number: int, after: list[int]) -> dict[str, Any]:
    hosts = {"source": "compute0", "host": "compute1", "named": True, "settles": False}
    return {"server": UUIDS[number], "name": "x", "live": True, "after": after, **hosts}


def test_a_flavor_of_an_audit_is_no_path() -> None:
    check = Draft4Validator(PlanStrategy.get_schema())
    assert check.is_valid({"question": "room", "flavor": "m1.gold v2"})
    for path in ("/etc/nova/nova.conf", "../a", "./a", ".a", "a.json", "-", "a/b"):
        assert not check.is_valid({"question": "room", "flavor": path}), path


def test_arguments() -> None:
    parameters = {"question": "drain", "hosts": ["a", "b"], "keep": 1, "cold": True}
    assert arguments_of(parameters) == ["drain", "a", "b", "--keep=1", "--cold"]
    room = {"question": "room", "flavor": "gold", "count": 3, "moves": 10}
    assert arguments_of(room) == ["room", "gold", "--count=3", "--moves=10"]
