"""Show what Placement does wrong if two clients write a consumer at the same time.

Needs ``oversold_race.py`` beside it, the standard library, and a Placement as described there with
``allocation_conflict_retry_count = 1``::

    python answers_race.py http://127.0.0.1:8000 [ROUNDS]

In each round two clients send a request at the same time, with the same generations:

* both free the allocations of a consumer;
* both move the allocations of a migration back to its server, on a provider that is full then;
* one moves the allocations of a server to a migration, the other gives the server more;
* both move the allocations of a server to a migration.

Expected in each round: 204 for a client, and 409 with the code ``placement.concurrent_update`` for
the other; after the last, a consumer holds what is used. The exit status is 1 otherwise.
"""

import sys
import threading
import uuid
from collections import Counter
from typing import Any

from oversold_race import ask

TARGET: dict[str, Any] = {"project_id": "p", "user_id": "u"}


def new_provider(vcpus: int = 1) -> str:
    """Create a provider of VCPU; return its uuid."""
    provider = str(uuid.uuid4())
    ask("POST", "/resource_providers", {"name": provider, "uuid": provider})
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": vcpus}}}
    ask("PUT", f"/resource_providers/{provider}/inventories", body)
    return provider


def holding(provider: str | None, generation: int | None, vcpus: int = 1) -> dict[str, Any]:
    """Return the body for a consumer that is to hold VCPU of a provider, or nothing."""
    allocations = {provider: {"resources": {"VCPU": vcpus}}} if provider else {}
    return {"allocations": allocations, "consumer_generation": generation, **TARGET}


def answers(*bodies: object) -> str:
    """Send two requests at the same time; return both answers."""
    start, results = threading.Barrier(2), list[str]()

    def send(body: object) -> None:
        start.wait()
        status, answer = ask("POST", "/allocations", body)
        code = f" {answer['errors'][0]['code']}" if answer else ""
        results.append(f"{status}{code}")

    threads = [threading.Thread(target=send, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return " and ".join(sorted(results))


def freed() -> str:
    """Free the allocations of a consumer; return the answers."""
    provider, consumer = new_provider(), str(uuid.uuid4())
    ask("POST", "/allocations", {consumer: holding(provider, None)})
    results = answers(*[{consumer: holding(None, 1)}] * 2)
    ask("DELETE", f"/resource_providers/{provider}")
    return results


def moved_back() -> str:
    """Move the allocations of a migration to a server; return the answers."""
    source, destination = new_provider(), new_provider()
    server, migration = str(uuid.uuid4()), str(uuid.uuid4())
    first = {migration: holding(source, None), server: holding(destination, None)}
    ask("POST", "/allocations", first)
    results = answers(*[{migration: holding(None, 1), server: holding(source, 1)}] * 2)
    ask("DELETE", f"/allocations/{server}")
    for provider in (source, destination):
        ask("DELETE", f"/resource_providers/{provider}")
    return results


def moved_and_grown() -> str:
    """Move the allocations of a server while another client adds to them; return the answers."""
    provider, server, migration = new_provider(3), str(uuid.uuid4()), str(uuid.uuid4())
    ask("POST", "/allocations", {server: holding(provider, None)})
    results = answers(
        {server: holding(None, 1), migration: holding(provider, None)},
        {server: holding(provider, 1, vcpus=2)},
    )
    for consumer in (server, migration):
        ask("DELETE", f"/allocations/{consumer}")
    ask("DELETE", f"/resource_providers/{provider}")
    return results


def moved_twice() -> str:
    """Move the allocations of a server to a new migration; return the answers and the loss."""
    provider, server, migration = new_provider(3), str(uuid.uuid4()), str(uuid.uuid4())
    ask("POST", "/allocations", {server: holding(provider, None)})
    results = answers(*[{server: holding(None, 1), migration: holding(provider, None)}] * 2)
    used = ask("GET", f"/resource_providers/{provider}/usages")[1]["usages"]["VCPU"]
    allocations = [
        ask("GET", f"/allocations/{each}")[1]["allocations"] for each in (server, migration)
    ]
    for consumer in (server, migration):
        ask("DELETE", f"/allocations/{consumer}")
    ask("DELETE", f"/resource_providers/{provider}")
    return (
        results
        if used and any(allocations)
        else f"{results}; {used} VCPU used, and nobody holds any"
    )


if __name__ == "__main__":
    rounds = int(sys.argv[2]) if sys.argv[2:] else 100
    expected = "204 and 409 placement.concurrent_update"
    is_wrong = False
    for race in (freed, moved_back, moved_and_grown, moved_twice):
        counts = Counter(race() for _ in range(rounds))
        print(race.__name__, dict(counts))  # noqa: T201
        is_wrong |= counts[expected] < rounds
    sys.exit(is_wrong)
