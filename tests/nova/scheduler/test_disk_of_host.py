"""Whether the group of the CPUs requests the disk, by what Placement says of pools."""

from typing import Any

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova.scheduler.utils import ResourceRequest

from cpu_tiers.nova.scheduler import disk_of_host, numa_groups
from cpu_tiers.nova.scheduler.disk_of_host import with_disk_of_host

POOLS = "/resource_providers?required=MISC_SHARES_VIA_AGGREGATE"
SIZES = {"VCPU": 4, "MEMORY_MB": 1024}
APART: dict[str | None, dict[str, int]] = {"_DISK": {"DISK_GB": 1}, "_HOST": SIZES}
TOGETHER = {"_HOST": {**SIZES, "DISK_GB": 1}}


class Client:
    """Answers each request with the next answer: providers, a status, a text, or an error."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.urls = [*answers], list[str]()

    def get(self, url: str, *, version: str, global_request_id: str) -> Any:
        assert (version, global_request_id) == ("1.18", "req-1")
        self.urls.append(url)
        self._answer = self.answers.pop(0)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self

    @property
    def status_code(self) -> int:
        return self._answer if isinstance(self._answer, int) else 200

    text = "Sorry"

    def json(self) -> Any:
        if isinstance(self._answer, str):
            raise ValueError(self._answer)
        return self._answer


class Context:
    global_id = "req-1"


def request(**amounts: int) -> Any:
    made = ResourceRequest()
    made.get_request_group(None).resources = {**SIZES, **amounts}
    return numa_groups.avoid_nodes(made)


def sent(client: Client, made: Any | None = None) -> dict[str | None, dict[str, int]]:
    """Return the resources of each group that is sent for a server with a disk of 1 GiB."""
    made = made or request(DISK_GB=1)
    before = resources(made)
    changed = with_disk_of_host(client, Context(), made)
    assert resources(made) == before
    return resources(changed)


def resources(made: Any) -> dict[str | None, dict[str, int]]:
    return {suffix: dict(group.resources) for suffix, group in made._rg_by_id.items()}


NONE: dict[str, list[Any]] = {"resource_providers": []}
ONE = {"resource_providers": [{"uuid": "pool"}]}


def test_placement_is_asked_every_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(disk_of_host, "monotonic", lambda: now)
    client = Client(NONE, ONE, NONE)
    assert sent(client) == sent(client) == TOGETHER
    now += 299
    assert sent(client) == TOGETHER
    assert client.urls == [POOLS]
    now += 1
    assert sent(client) == sent(client) == APART
    assert client.urls == [POOLS] * 2
    now += 300
    assert sent(client) == TOGETHER


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ConnectFailure("reset"), id="reset"),
        pytest.param(503, id="503"),
        pytest.param("half JSON", id="no JSON"),
        pytest.param({}, id="without the key"),
        pytest.param([], id="of another type"),
    ],
)
def test_without_an_answer_the_disk_has_its_own_group(answer: Any) -> None:
    client = Client(answer, NONE)
    assert sent(client) == APART
    assert sent(client) == TOGETHER  # asked again
    assert client.urls == [POOLS] * 2


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(request(), id="without a disk"),
        pytest.param(request(DISK_GB=1, CUSTOM_GPU=1), id="with a device"),
        pytest.param(ResourceRequest(), id="of Nova alone"),
    ],
)
def test_nothing_is_asked_without_a_group_of_its_own(made: Any) -> None:
    client = Client()
    assert sent(client, made) == resources(made)
    assert not client.urls
