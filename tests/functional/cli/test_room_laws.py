"""All commands give one answer to "is there room?", which is the answer of a real Placement.

A drawn cloud is a snapshot for the commands and rows of a real Placement.
``CPU_TIERS_CLOUDS=0-1999`` compares 2,000 clouds; ``pytest -s`` prints each difference at once.
"""

import io
import json
import logging
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.frame.app import main
from cpu_tiers.tools.placement.embedded import placement_app
from tests.draws import SEED, clouds
from tests.functional.conftest import Front
from tests.random_clouds.real_placement import (
    Candidate,
    RealPlacement,
    Refused,
    as_sent,
    as_vcpu,
    packing,
)
from tests.random_clouds.whole_clouds import (
    BANDWIDTH,
    DISABLED,
    SHARES,
    Json,
    draw_cloud,
    hosts_of,
    identity,
    new_cloud,
    new_flavor,
    numa_host,
    provider,
)

PORT = {"resources": {BANDWIDTH: 200}, "required": ["CUSTOM_PHYSNET_FAST"]}
PORT = {"id": "p", "resource_request": PORT}

MOST_CLAIMS = 40
"""Larger numbers of servers are compared, and not claimed one after the other."""


class NoAnswer(Exception):
    """A command ends with an error."""


class Commands:
    """The program on a snapshot, or on a Placement over HTTP, in this process.

    :param url: of the Placement.
    :ivar is_live: whether commands ask the Placement, without Nova.
    :ivar status: the exit status of the last command.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self._folder, self._url, self.is_live, self.status = folder, url, False, 0
        self.port = f"--port={folder / 'port.json'}"

    def write(self, cloud: Json, **options: bool) -> None:
        """Write the snapshot, and options of nova-scheduler if there are any."""
        files = {"cloud.json": cloud, "port.json": PORT}
        for each in cloud["flavors"]:
            sizes = {"vcpus": each["vcpus"], "ram": each["memory_mb"], "disk": each["root_gb"]}
            files[each["name"]] = {
                "name": each["name"],
                "properties": each["extra_specs"],
                **sizes,
            }
        for name, document in files.items():
            (self._folder / name).write_text(json.dumps(document))
        if options:
            lines = (f"query_placement_for_{name} = {is_on}" for name, is_on in options.items())
            url = "[placement]", "auth_type = admin_token", "token = admin"
            (self._folder / "nova.conf").write_text(
                "\n".join(("[filter_scheduler]", *lines, *url, f"endpoint = {self._url}"))
            )

    def run(self, *arguments: object) -> Any:
        """Return the answer of a command as data."""
        path, conf = self._folder / "cloud.json", self._folder / "nova.conf"
        snapshot = [path] if arguments[0] == "simulate" else ["--snapshot", path]
        snapshot = [] if self.is_live else snapshot
        form = [] if "snapshot" in arguments else ["-f", "json"]
        command = ["--config-file", conf, *arguments, *snapshot, *form]
        root, out, error = logging.getLogger(), io.StringIO(), io.StringIO()
        # The program adds a handler, and wraps the streams of handlers that write to files.
        handlers, level, root.handlers[:] = list(root.handlers), root.level, []
        with redirect_stdout(out), redirect_stderr(error):
            self.status = main(list(map(str, command)))
        root.handlers[:] = handlers
        root.setLevel(level)
        if self.status not in (0, 3):
            raise NoAnswer(f"{arguments}: {error.getvalue()}")
        return json.loads(out.getvalue() or "null")

    def asked(self, command: str, flavor: str, *options: str) -> Any:
        """Return the answer of a command about a flavor of the cloud, or of a file."""
        source = [self._folder / flavor] if self.is_live else ["--flavor", flavor]
        return self.run(*command.split(), *source, *options)

    def snapshot(self) -> Json:
        """Return the snapshot that the program makes of the Placement."""
        self.run("cloud", "snapshot", "--no-flavors", path := self._folder / "live.json")
        snapshot: Json = json.loads(path.read_text())
        return snapshot

    def capacity(self, flavor: str, *options: str) -> int:
        return int(self.asked("capacity", flavor, *options)[0]["more"])

    def room(self, flavor: str, *options: str) -> int:
        return int(self.run("plan", "room", flavor, "--seconds", 1, *options)["room"]["before"])

    def explained(self, flavor: str, *options: str) -> tuple[bool, int]:
        """Return whether ``explain`` says yes, and its number of hosts."""
        answer = self.asked("explain", flavor, *options)
        return self.status == 0, int(answer["candidates"])

    def tier_rooms(self) -> dict[str, int]:
        """Return what ``cloud show`` says for each tier."""
        path = self._folder / "cloud.prom"
        self.run("cloud", "show", "--prometheus", path)
        lines = path.read_text().splitlines()
        rows = [line.split('"') for line in lines if line.startswith("cpu_tiers_tier_room{")]
        return {tier: int(number.strip("} ")) for _, tier, number in rows}

    def simulated(self, flavor: str, number: int) -> int:
        """Return how many of a number of requests ``simulate`` grants, one after the other."""
        lines = ("time,flavor", *(f"{time},{flavor}" for time in range(number)))
        (path := self._folder / "requests.csv").write_text("\n".join(lines))
        options = ("--requests", path, "--policy", "nova", "--seeds", 1)
        return int(self.run("simulate", *options)[0]["taken"]["mean"])


class Scene:
    """A cloud in a snapshot and in Placement.

    :ivar seen: how often each law was looked at.
    :ivar found: the laws that are not kept, with the values of both sides.
    """

    def __init__(
        self, commands: Commands, placement: RealPlacement, cloud: Json, rng: random.Random
    ) -> None:
        self.commands, self.placement, self.cloud, self.rng = commands, placement, cloud, rng
        self.seen, self.found = Counter[str](), list[tuple[str, object]]()
        self.closed = {*cloud["down"]} | {
            host["uuid"]
            for host in hosts_of(cloud["providers"])
            # A cloud that names no service of any host does not say which hosts are removed.
            if DISABLED in host["traits"]
            or (cloud["services"] and host["uuid"] not in cloud["services"])
        }
        roots = {each["uuid"]: each["uuid"] for each in cloud["providers"]}
        for each in cloud["providers"]:  # parents come first
            roots[each["uuid"]] = roots.get(each["parent_uuid"], each["uuid"])
        self.dedicated = {
            roots[each["uuid"]] for each in cloud["providers"] if "PCPU" in each["inventories"]
        }
        first = cloud["providers"][0]
        self.shares_cpus = SHARES in first["traits"] and "VCPU" in first["inventories"]
        self.host_of, self.ports_of = dict[str, str](), dict[str, list[str]]()
        self._known = dict[object, Sequence[str]]()
        placement.load(cloud)
        commands.write(cloud)

    def law(self, name: str, is_kept: bool, *values: object) -> None:
        """Note whether a law is kept."""
        self.seen[name] += 1
        if not is_kept:
            self.found.append((name, values))

    def _queries(self, flavor: str, *ports: str) -> Sequence[str]:
        if (flavor, ports) not in self._known:
            shown = self.commands.asked("request show", flavor, "--form", "fast", *ports)
            queries = list(filter(None, (shown["query"], shown["fallback_query"])))
            self._known[flavor, ports] = queries
        return self._known[flavor, ports]

    def candidates(self, flavor: Json, *options: str) -> list[Candidate]:
        """Return the candidates of a server on the hosts that take servers.

        Nova asks for dedicated CPUs as VCPU, too, which hosts without dedicated CPUs give.
        """
        ports = [option for option in options if option == self.commands.port]
        aggregates = [each.partition("=")[2] for each in options if each not in ports]
        queries = self._queries(flavor["name"], *ports)
        sent = [as_sent(query, *aggregates) for query in queries]
        shared = self.placement.candidates(as_vcpu(sent))
        places = [each for each in shared if each.host not in self.dedicated]
        places += self.placement.candidates(sent)
        closed = () if self.commands.is_live else self.closed
        # An answer may have a candidate twice.
        return [*{str(each): each for each in places if each.host not in closed}.values()]

    def boot(self) -> None:
        """Let servers claim drawn candidates, some of them in a group, and take from pools."""
        rng, cloud = self.rng, self.cloud
        for number in range(rng.choice([0, 2, 4, 8])):
            flavor = rng.randrange(len(cloud["flavors"]))
            ports = [self.commands.port] * (number % 3 == 1 and not self.shares_cpus)
            if found := self.candidates(cloud["flavors"][flavor], *ports):
                chosen = rng.choice(found)
                self.claim(identity(rng), chosen.allocations, chosen.host)
                state = {"name": f"s{number}", "flavor": flavor, "state": "ACTIVE"}
                server = list(self.host_of)[-1]
                cloud["servers"][server], self.ports_of[server] = state, ports
        for name in range(rng.choice([0, 1, 2])):
            most, on = rng.choice([1, 1, 2]), Counter[str]()
            members = [server for server in self.host_of if rng.random() < 0.4]
            for server in list(members):
                on[self.host_of[server]] += 1
                if on[self.host_of[server]] > most:
                    members.remove(server)
            group = {"name": str(name), "policy": "anti-affinity", "most": most}
            cloud["groups"][identity(rng)] = {**group, "members": members}
        for each in cloud["providers"]:
            if each["name"].startswith("pool") and rng.random() < 0.4:
                with suppress(Refused):
                    self.claim(identity(rng), {each["uuid"]: {"DISK_GB": rng.randint(1, 10)}})

    def claim(self, consumer: str, allocations: Any, host: str = "") -> None:
        """Let a consumer have allocations, a server if a host is given."""
        self.placement.claim(consumer, allocations)
        self.cloud["consumers"][consumer] = allocations
        if host:
            self.host_of[consumer] = host

    def look(self, *options: str) -> None:
        """Compare the commands for each flavor, with options for an aggregate or a port."""
        is_live, has_port = self.commands.is_live, self.commands.port in options
        is_plain = not options and not is_live
        where = " over HTTP" * is_live + " with a port" * has_port
        tiers = self.commands.tier_rooms() if is_plain else {}
        for each in self.cloud["flavors"]:
            name, specs = each["name"], each["extra_specs"]
            found = self.candidates(each, *options)
            numbers = packing([each.rows for each in found], self.placement.free)
            number, hosts = sum(numbers), len({candidate.host for candidate in found})
            answers = {
                "capacity": (self.commands.capacity(name, *options), number),
                "explain": (self.commands.explained(name, *options), (number > 0, hosts)),
            }
            if not is_live and not has_port:
                answers["plan room"] = self.commands.room(name, *options), number
            if is_plain:
                tier = f"multiplier {specs['quota:cpu_shares_multiplier']}"
                tier = "bare metal" if "resources:CUSTOM_METAL" in specs else tier
                answers["cloud show"] = tiers.get(tier), number
            for law, (said, right) in answers.items():
                self.law(law + where, said == right, name, said, right)
            if is_plain:
                self._look_at_claims(each, found, numbers)

    def look_over_http(self) -> None:
        """Compare the commands that ask a Placement, and do not know which hosts are up.

        A plan needs servers of Nova, and plans with a snapshot: that of Placement is the cloud.
        """
        self.commands.is_live = True
        try:
            self.look()
            live = self.commands.snapshot()
        finally:
            self.commands.is_live = False
        self.law("snapshot over HTTP", _in_no_order(live) == _in_no_order(self.cloud), live)

    def _look_at_claims(
        self, flavor: Json, found: Sequence[Candidate], numbers: list[int]
    ) -> None:
        """Have Placement grant the claims of a largest packing, and ``simulate`` its own."""
        name, number = flavor["name"], sum(numbers)
        if number <= MOST_CLAIMS:
            claims = [c for c, times in zip(found, numbers, strict=True) for _ in range(times)]
            consumers = {identity(self.rng): claim for claim in claims}
            for consumer, claim in consumers.items():
                self.placement.claim(consumer, claim.allocations)
            left = self.candidates(flavor)
            self.placement.release(consumers)
            self.law("no further candidate", not left, name, number)
        fewest = sum(packing([c.rows for c in found], self.placement.free, fewest=True))
        simulated = self.commands.simulated(name, number + 2)
        self._between("simulate", fewest, simulated, number, name)

    def _between(self, law: str, least: int, said: int, most: int, *values: object) -> None:
        """Note whether a number is possible where each claim takes the place that Nova prefers.

        Placement has no order of candidates, so the number is not known where they differ.
        """
        self.law(law, least <= said <= most, *values, least, said, most)
        self.seen[f"{law}, one possible number"] += least == most

    def look_at_moves(self) -> None:
        """Compare which hosts may fail, and whether a host can be emptied."""
        stay = self.commands.run("plan", "survive", "--seconds", 1)["stay"]
        uuids = {each["name"]: each["uuid"] for each in hosts_of(self.cloud["providers"])}
        roots = {*uuids.values()}
        for host in hosts_of(self.cloud["providers"]):
            if "CUSTOM_METAL" in host["inventories"]:  # nobody migrates a node of Ironic
                continue
            leaving = [s for s, at in self.host_of.items() if at == host["uuid"]]
            said = sum(each["why"].endswith(f" if {host['name']} fails") for each in stay)
            homes = {server: roots - {host["uuid"]} for server in leaving}
            with self._without(leaving):
                least, most = self._homeless(homes)
            self._between("survive", least, said, most, host["name"])
            if leaving and host["uuid"] not in self.closed:
                plan = self.commands.run("plan", "drain", host["name"], "--seconds", 1)
                is_done = self.commands.status == 0
                # No other server moves and nothing is given back: a plan may find more.
                homeless, _ = self._homeless(homes)
                self.law("drain", is_done or homeless > 0, host["name"], homeless)
                self.seen["drain by further moves"] += is_done and homeless > 0
                ends = {each["server"]: {uuids[each["to"]]} for each in plan["moves"]}
                with self._without(ends):
                    homeless, _ = self._homeless(ends)
                gone = sum(
                    ends.get(server, {host["uuid"]}) != {host["uuid"]} for server in leaving
                )
                is_kept = not homeless and is_done == (gone == len(leaving))
                self.law("the end of a drain", is_kept, host["name"], ends, homeless, gone)

    @contextmanager
    def _without(self, servers: Collection[str]) -> Iterator[None]:
        """Have Placement without what servers hold."""
        self.placement.release(servers)
        yield
        for server in servers:
            self.placement.claim(server, self.cloud["consumers"][server])

    def _homeless(self, homes: Mapping[str, Collection[str]]) -> tuple[int, int]:
        """Return how many servers find no place on the hosts of each, at best and at worst."""
        columns, free = list[dict[Any, int]](), dict[Any, int]()
        for server, hosts in homes.items():
            flavor = self.cloud["flavors"][self.cloud["servers"][server]["flavor"]]
            groups = [g for g in self.cloud["groups"].values() if server in g["members"]]
            free["once", server] = 1
            for place in self.candidates(flavor, *self.ports_of[server]):
                if place.host not in hosts:
                    continue
                rows = {**place.rows, ("once", server): 1}
                for group in groups:
                    members = (each for each in group["members"] if each not in homes)
                    others = [each for each in members if self.host_of[each] == place.host]
                    rows[group["name"], place.host] = 1
                    free[group["name"], place.host] = group["most"] - len(others)
                columns.append(rows)
        free |= self.placement.free
        least, most = (
            len(homes) - sum(packing(columns, free, fewest=fewest)) for fewest in (False, True)
        )
        return least, most


def _in_no_order(cloud: Json) -> object:
    """Return the providers and the consumers of a snapshot, whose order says nothing."""
    sets = ("traits", "aggregates")
    providers = ({**each, **{n: {*each[n]} for n in sets}} for each in cloud["providers"])
    return {each["uuid"]: each for each in providers}, cloud["consumers"]


@pytest.fixture(scope="module")
def placement() -> Iterator[RealPlacement]:
    with placement_app() as app, Front(app, [], []) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield RealPlacement(app, f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()


def drawn_scene(placement: RealPlacement, commands: Commands, number: int) -> Scene:
    """Return the cloud of a number, with servers."""
    rng = random.Random(f"{SEED} {number}")  # not for secrets
    cloud = draw_cloud(rng)
    commands.write(cloud, vcpu_shares=rng.random() < 0.5, numa=rng.random() < 0.8)
    scene = Scene(commands, placement, cloud, rng)
    scene.boot()
    commands.write(cloud)
    return scene


def test_one_answer(placement: RealPlacement, tmp_path: Path) -> None:
    seen, found, commands = Counter[str](), list[str](), Commands(tmp_path, placement.url)
    for number in clouds(30):
        scene = drawn_scene(placement, commands, number)
        names = {name for each in scene.cloud["providers"] for name in each["aggregates"]}
        looks: list[Callable[[], object]] = [scene.look]
        # A server on the CPUs of another host is on no host that a plan knows, and Placement has a
        # fault for ports there (docs/contributor/upstream/shared-disk.rst).
        if not scene.shares_cpus:
            looks.append(scene.look_at_moves)
            looks += [partial(scene.look, commands.port)] * (number % 4 == 1)
        if number % 8 == 2:
            looks.append(scene.look_over_http)
        if names and not number % 3:
            looks.append(partial(scene.look, f"--aggregate={min(names)}"))
        for look in looks:
            try:
                look()
            except NoAnswer as error:
                scene.law("an answer", False, error)
        seen += scene.seen
        for law, values in scene.found:
            found.append(f"{law}: {values}: CPU_TIERS_SEED={SEED} CPU_TIERS_CLOUDS={number}")
            print(f"\n{found[-1]}", end="")  # noqa: T201  # for the runs of many clouds, with -s
    print(f"\n{dict(seen)}")  # noqa: T201
    counts = Counter(text.partition(":")[0] for text in found)
    assert not found, "\n".join([str(dict(counts)), *found[:40]])


def nodes(number: int, cpus: int = 4, name: str = "cn0") -> list[Json]:
    """Return a host with NUMA nodes, with more memory than servers need."""
    return numa_host(name, number, 8192, VCPU=cpus)


def in_aggregate(*providers: Json) -> list[Json]:
    """Return root providers in an aggregate."""
    return [{**each, "aggregates": [str(uuid.UUID(int=1))]} for each in providers]


def guest(nodes: int, vcpus: int, name: str = "f0") -> Json:
    """Return a flavor with NUMA nodes."""
    return new_flavor(name, vcpus, 384, specs={"hw:numa_nodes": str(nodes)})


UNEVEN = {"hw:numa_cpus.0": "0", "hw:numa_cpus.1": "1,2", "hw:numa_mem.0": "192"}
UNEVEN |= {"hw:numa_mem.1": "192", "hw:numa_nodes": "2"}
PINNED = {"hw:cpu_policy": "dedicated"}
METAL = dict.fromkeys(("resources:VCPU", "resources:MEMORY_MB", "resources:DISK_GB"), "0")
METAL |= {"resources:CUSTOM_METAL": "1"}
FLAT = provider("cn0", None, VCPU=16, MEMORY_MB=65536)
POOLS = [provider(f"pool{number:02}", None, SHARES, DISK_GB=100) for number in range(70)]


@pytest.mark.parametrize(
    ("providers", "full", "flavor", "number"),
    [
        # Each pair of nodes takes a server: 2 + 2 of 4 CPUs of each node.
        pytest.param(nodes(3), 0, guest(2, 4), 3, id="three pairs of three nodes"),
        # 6 nodes with room for 2 guest nodes each: 12 / 3, and 12 / 4.
        pytest.param(nodes(8), 2, guest(3, 6), 4, id="the last 6 of 8 nodes have room"),
        pytest.param(nodes(8), 2, guest(4, 8), 3, id="the last 6, guests of 4 nodes"),
        # Each node has room for a guest node of 1 CPU and one of 2.
        pytest.param(nodes(2, 3), 0, new_flavor("f0", 3, 384, specs=UNEVEN), 2, id="uneven nodes"),
        # 16 / 2 CPUs; the last 4 pools have 400 / 10.
        pytest.param(
            in_aggregate(FLAT, *POOLS), 66, new_flavor("f0", 2, 512, 10), 8,
            id="the last 4 of 70 pools have room",
        ),
        # The other host has no CPUs, and gets those of the host that shares: 16 / 2 in all.
        pytest.param(
            in_aggregate({**FLAT, "traits": [SHARES]}, provider("cn1", None, CUSTOM_METAL=1)), 0,
            new_flavor("f0", 2, 512), 8, id="a host that shares its CPUs counts once",
        ),
        pytest.param(
            [FLAT], 0, new_flavor("f0", 2, 512, specs=PINNED), 8, id="pinned, without PCPU"
        ),
        # 16 / 2 VCPU of the one host, and 5 // 2 PCPU of the other, whose VCPU are for others.
        pytest.param(
            [FLAT, provider("cn1", None, VCPU=8, PCPU=5, MEMORY_MB=65536)], 0,
            new_flavor("f0", 2, 512, specs=PINNED), 10, id="pinned, with and without PCPU",
        ),
        pytest.param(
            [provider(f"cn{n}", None, "COMPUTE_NODE", CUSTOM_METAL=1) for n in range(2)], 0,
            new_flavor("f0", 2, 512, specs=METAL), 2, id="bare metal",
        ),
    ],
)  # fmt: skip
def test_small_clouds(
    tmp_path: Path, providers: list[Json], full: int, flavor: Json, number: int
) -> None:
    """Commands give a number that is worked out by hand; the first NUMA nodes or pools are full.

    Placement itself would try 16 million combinations for a guest of 4 nodes on 8.
    """
    cloud, commands = new_cloud(providers, flavor), Commands(tmp_path)
    parts = [p for p in providers if p["name"].startswith("pool") or "HW_NUMA_ROOT" in p["traits"]]
    cloud["consumers"] = {
        each["uuid"]: {each["uuid"]: {n: i["total"] for n, i in each["inventories"].items()}}
        for each in parts[:full]
    }
    commands.write(cloud, numa="hw:numa_nodes" in flavor["extra_specs"], vcpu_shares=False)
    answers = {
        "capacity": commands.capacity("f0"),
        "plan room": commands.room("f0"),
        "cloud show": next(iter(commands.tier_rooms().values())),
        "explain": commands.explained("f0")[0],
        "simulate": 0 < commands.simulated("f0", number + 2) <= number,
    }
    yes = {"explain": True, "simulate": True}
    assert answers == {**dict.fromkeys(answers, number), **yes}


def test_a_guest_of_four_nodes_may_leave(tmp_path: Path) -> None:
    """The other host has room on the last 4 of its 8 nodes, and the first for 4 small servers."""
    providers = [*nodes(8), *nodes(8, name="cn1")]
    uuids = {each["name"]: each["uuid"] for each in providers}
    cloud, commands = new_cloud(providers, guest(4, 8), guest(1, 4, "f1")), Commands(tmp_path)
    for number, (host, flavor, used) in enumerate(
        [("cn0", 0, range(4)), *(("cn1", 1, range(n, n + 1)) for n in range(4))]
    ):
        server, cpus, memory_mb = str(uuid.UUID(int=number)), 4 if flavor else 2, 384 // len(used)
        held = {uuids[f"{host}_NUMA{node}"]: {"VCPU": cpus} for node in used}
        held |= {uuids[f"{host}_NUMA{node}_4"]: {"MEMORY_MB": memory_mb} for node in used}
        cloud["consumers"][server] = {uuids[host]: {"CUSTOM_NUMA_SERVER": 1}, **held}
        cloud["servers"][server] = {"name": f"s{number}", "flavor": flavor, "state": "ACTIVE"}
    commands.write(cloud, numa=True, vcpu_shares=False)
    statuses = {}
    for question in (["survive"], ["drain", "cn0"], ["drain", "cn1"]):
        commands.run("plan", *question)
        statuses[" ".join(question)] = commands.status
    assert statuses == {"survive": 0, "drain cn0": 0, "drain cn1": 0}
