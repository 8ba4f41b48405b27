"""Plans of a drawn cloud, carried out by Nova's services, which judge each word of a plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.plan.bindings import FOLLOWS
from cpu_tiers.tools.plan.verdicts import NOVA_CHOOSES
from tests.nova.command_line import services_of, streams
from tests.nova.commands.judged_plans.drawing import DrawnCloud
from tests.nova.commands.judged_plans.image_service import image_service
from tests.nova.commands.judged_plans.services import JudgedCloud
from tests.nova.patience import wait_until


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What a plan says, and what Nova does.

    :param plan: the arguments of the plan.
    :param kind: a word for similar differences.
    :param unknown: what the plan says that it does not know.
    :param drawn: all of the drawn server that is not plain.
    """

    plan: str
    kind: str
    server: str
    ours: str
    novas: str
    unknown: str
    drawn: str

    def __str__(self) -> str:
        return (
            f"{self.kind} | plan {self.plan} | {self.server} | {self.ours} | Nova: {self.novas}"
            f" | {self.drawn} | not known: {self.unknown}"
        )


class Judge:
    """Has Nova carry out the plans of a cloud; collects the differences."""

    def __init__(self, cloud: JudgedCloud) -> None:
        self.cloud = cloud
        self.differences: list[Difference] = []
        self.steps = 0
        """The steps that Nova was made to take, tries for servers that stay among them."""
        self.told = 0
        self.refused = cloud.refused
        self._conf = str(cloud.nova_conf())
        self._plan = self._unknown = ""

    def ask(self, *arguments: str) -> Mapping[str, Any]:
        """Return what ``cpu-tiers plan`` answers, minutes after the last migration."""
        self.cloud.settle()
        self._plan = " ".join(arguments)
        cold = ["--cold"] if self.cloud.drawn.is_cold else []
        argv = ["--config-file", self._conf, "plan", *arguments, *cold, "-f", "json"]
        with (
            mock.patch.object(
                NovaConfCommand,
                "services",
                return_value=services_of(self.cloud, image_service(self.cloud.glance)),
            ),
            streams() as (out, error),
        ):
            code = app.main(argv)
        assert code in (0, 3), out.getvalue() + error.getvalue()
        answer: Mapping[str, Any] = json.loads(out.getvalue())
        self._unknown = "; ".join(answer["unknown"][:-1])  # the last is said of each plan
        return answer

    def differ(self, kind: str, server: str, ours: str, novas: str) -> None:
        names = {uuid: name for name, uuid in self.cloud.uuids.items()}
        if "JsonFilter" in self._unknown and "query" in self._drawn(names.get(server, server)):
            self.told += 1  # the first lines of the plan say that the plan does not know this
            return
        self.differences.append(
            Difference(
                plan=self._plan,
                kind=kind,
                server=names.get(server, server),
                ours=ours,
                novas=novas.strip().splitlines()[-1][:400],
                unknown=self._unknown,
                drawn=self._drawn(names.get(server, server)),
            )
        )

    def _drawn(self, name: str) -> str:
        """Return all that is not plain of a server."""
        for server in self.cloud.drawn.servers:
            if server.name == name:
                return ", ".join(
                    f"{key}={value}" for key, value in asdict(server).items() if value
                )
        return ""

    def judge_all(self) -> None:
        """Judge a plan of each kind, one after the other."""
        drawn = self.cloud.drawn
        up = [host.name for host in drawn.hosts if host.state in ("", "disabled")]
        disabled = [host.name for host in drawn.hosts if host.state == "disabled"]
        self.relieve()
        if not self._limits_projects():  # a plan of room knows no project
            self.room(f"f-{drawn.servers[-1].name}", drawn.wanted)
        for host in up:
            self.drain(host)
            self.cloud.enable(host, is_on=host not in disabled)
        for host in up[:1]:
            self.survive(host)

    def _limits_projects(self) -> bool:
        drawn = self.cloud.drawn
        named = {*drawn.filters, *drawn.prefilters}
        return any(host.tenant for host in drawn.hosts) and bool(
            named & {"AggregateMultiTenancyIsolation", "limit_tenants_to_placement_aggregate"}
        )

    def carry_out(self, moves: Sequence[Mapping[str, Any]]) -> bool:
        """Migrate as a plan says, up to the first failure, as the script of the plan does."""
        return all(map(self._step, moves))

    def _step(self, move: Mapping[str, Any]) -> bool:
        uuid, target = move["server"], move["host"]
        if move["settles"]:
            self.cloud.settle()
        fault = self.migrate(uuid, target if move["named"] else None, is_live=move["live"])
        now = self.cloud.host_of({"id": uuid})
        if not fault and now != target:
            fault = f"nova-scheduler took {now}"
        if fault:
            ours = f"{move['from']} to {move['to']}"
            self.differ("step", uuid, ours, fault)
        return not fault

    def migrate(self, uuid: str, host: str | None, *, is_live: bool) -> str:
        """Migrate a server to a host, or to the host that Nova takes; return what is wrong."""
        self.steps += 1
        before = self.cloud.host_of({"id": uuid})
        live = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
        cold: dict[str, Any] = {"migrate": {"host": host} if host else None}
        try:
            self.cloud.act(uuid, live if is_live else cold)
        except OpenStackApiException as error:
            return str(error)
        server = self.cloud.api.get_server(uuid)
        now = server["OS-EXT-SRV-ATTR:host"]
        if now == before or (host and now != host):
            return self._last_fault(uuid) or f"it is on {now}"
        if not is_live:
            if server["status"] != "VERIFY_RESIZE":
                return f"it is {server['status']}"
            self.cloud.act(uuid, {"confirmResize": None})
            (migration, *_) = self._migrations(uuid)
            # Nova frees the allocation of a migration after it has noted the end.
            wait_until(lambda: not self.cloud.held(migration["uuid"]))
        return ""

    def _last_fault(self, uuid: str) -> str:
        with suppress(StopIteration):
            return self.cloud.last_failure_of({"id": uuid})
        fault = self.cloud.api.get_server(uuid).get("fault", {}).get("message", "")
        return f"{fault} {[each['status'] for each in self._migrations(uuid)]}"

    def _migrations(self, uuid: str) -> list[dict[str, Any]]:
        """Return the migrations of a server, the last first."""
        path = f"/os-migrations?instance_uuid={uuid}"
        found: list[dict[str, Any]] = self.cloud.api.api_get(path).body["migrations"]
        return sorted(found, key=lambda each: -each["id"])

    def drain(self, host: str) -> None:
        """Judge ``plan drain``: each step, each server that stays, and what is left of others."""
        plan = self.ask("drain", host)
        self.cloud.enable(host, is_on=False)
        if not self.carry_out(plan["moves"]):
            return
        stays = {row["server"]: row["why"] for row in plan["stay"]}
        for uuid in {*self.cloud.servers_on(host), *self._consumers_of(host)}.difference(stays):
            self.differ("left out", uuid, plan["verdict"], "it is on the host")
        self.stay(stays)

    def _consumers_of(self, host: str) -> Iterator[str]:
        """Yield the consumers that hold something of a host."""
        for provider in self.cloud._get_all_rp_uuids_in_a_tree(self.cloud.compute_rp_uuids[host]):
            yield from self.cloud._get_allocations_by_provider_uuid(provider)

    def stay(self, stays: Mapping[str, str]) -> None:
        """Try to migrate each server for which a plan has no place."""
        for uuid, why in stays.items():
            self.cloud.settle()
            if self._try(uuid):
                continue
            where = self.cloud.host_of({"id": uuid})
            is_told = NOVA_CHOOSES in why and where in why.replace(",", "").split()
            if is_told or FOLLOWS in why:
                self.told += 1
            else:
                self.differ("stays", uuid, why, f"migrates it to {where}")

    def _try(self, uuid: str) -> str:
        try:
            server = self.cloud.api.get_server(uuid)
        except OpenStackApiException as error:
            return str(error)  # a consumer that is no server
        is_off = server["status"] == "SHUTOFF"
        if is_off and not self.cloud.drawn.is_cold:
            return "it is powered off"
        return self.migrate(uuid, None, is_live=not is_off)

    def relieve(self) -> None:
        """Judge ``plan relieve``: each step, each server that stays, and what is left."""
        plan = self.ask("relieve")
        if not self.carry_out(plan["moves"]):
            return
        self.stay({row["server"]: row["why"] for row in plan["stay"]})
        if plan["moves"] and "mends all" in plan["verdict"]:
            again = self.ask("relieve")
            if again["moves"]:
                self.differ("again", "", plan["verdict"], again["verdict"])

    def room(self, flavor: str, wanted: int) -> None:
        """Judge ``plan room``: each step, and how many servers find a host afterwards."""
        plan = self.ask("room", flavor, "--count", str(wanted))
        if not self.carry_out(plan["moves"]):
            return
        found = list(self._boot_until_full(flavor, wanted))
        after = plan["room"]["after"]
        if len(found) != min(after, wanted):
            self.differ("room", "", plan["verdict"], f"{len(found)} of {wanted} boot")
        for uuid in found:
            self.cloud.delete(uuid)

    def _boot_until_full(self, flavor: str, most: int) -> Iterator[str]:
        flavors = {each["name"]: each["id"] for each in self.cloud.api.get_flavors()}
        self.cloud.settle()
        for _ in range(most):
            self.steps += 1
            body = self.cloud._build_server(flavor_id=flavors[flavor], networks="none")
            uuid = self.cloud.api.post_server({"server": body})["id"]
            self.cloud.rest(uuid)
            if self.cloud.api.get_server(uuid)["status"] != "ACTIVE":
                self.cloud.delete(uuid)
                return
            yield uuid

    def survive(self, host: str) -> None:
        """Judge ``plan survive`` for a host, which fails for good."""
        plan = self.ask("survive")
        ending = f"if {host} fails"
        homeless = {row["server"]: row["why"] for row in plan["stay"] if ending in row["why"]}
        self.cloud.go_down(host)
        for uuid in self.cloud.servers_on(host):
            self.cloud.settle()
            fault = self._evacuate(uuid, host)
            if fault and uuid not in homeless:
                self.differ("survive yes", uuid, plan["verdict"], fault)
            if not fault and uuid in homeless:
                where = self.cloud.host_of({"id": uuid})
                self.differ("survive no", uuid, homeless[uuid], f"evacuates it to {where}")

    def _evacuate(self, uuid: str, host: str) -> str:
        self.steps += 1
        try:
            if self.cloud.api.get_server(uuid)["status"] == "VERIFY_RESIZE":
                self.cloud.act(uuid, {"confirmResize": None})
            self.cloud.act(uuid, {"evacuate": {}})
        except OpenStackApiException as error:
            return str(error)
        return "" if self.cloud.has_left(uuid, host) else self._last_fault(uuid)


def judged(drawn: DrawnCloud) -> Judge:
    """Judge the plans of a drawn cloud."""
    cloud = JudgedCloud.of(drawn)
    try:
        cloud.setUp()
        cloud.build()
        judge = Judge(cloud)
        judge.judge_all()
        return judge
    finally:
        cloud.end()
