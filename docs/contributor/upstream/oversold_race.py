"""Show that concurrent claims can exceed the capacity of a provider in Placement.

Needs only the standard library, and a Placement with ``auth_strategy = noauth2`` on MariaDB or
PostgreSQL, behind a server with several threads::

    python oversold_race.py http://127.0.0.1:8000 [ROUNDS]

In each round 16 new consumers claim 1 VCPU each of a new provider with 6 VCPU, at the same time.
Expected: 6 VCPU are used after each round. The exit status is 1 if more are used.
"""

import json
import sys
import threading
import urllib.error
import urllib.request
import uuid
from typing import Any

CLAIMS, CAPACITY = 16, 6
HEADERS = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement 1.36",
    "Content-Type": "application/json",
}


def ask(method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Send a request; return the status and the body of the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(sys.argv[1] + path, data, HEADERS, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            status, content = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, content = error.code, error.read()
    return status, json.loads(content) if content.startswith(b"{") else None


def claim(provider: str, consumer: str, start: threading.Barrier) -> None:
    """Claim 1 VCPU, when all claims are ready."""
    allocations = {provider: {"resources": {"VCPU": 1}}}
    owner = {"project_id": "p", "user_id": "u", "consumer_generation": None}
    start.wait()
    ask("PUT", f"/allocations/{consumer}", {"allocations": allocations, **owner})


def used_after_a_round() -> int:
    """Return the VCPU that are used after 16 claims."""
    provider = str(uuid.uuid4())
    ask("POST", "/resource_providers", {"name": provider, "uuid": provider})
    inventories = {"VCPU": {"total": CAPACITY}}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    ask("PUT", f"/resource_providers/{provider}/inventories", body)
    consumers = [str(uuid.uuid4()) for _ in range(CLAIMS)]
    start = threading.Barrier(CLAIMS)
    threads = [threading.Thread(target=claim, args=(provider, c, start)) for c in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, answer = ask("GET", f"/resource_providers/{provider}/usages")
    for consumer in consumers:
        ask("DELETE", f"/allocations/{consumer}")
    ask("DELETE", f"/resource_providers/{provider}")
    return int(answer["usages"]["VCPU"])


if __name__ == "__main__":
    rounds = [used_after_a_round() for _ in range(int(sys.argv[2]) if sys.argv[2:] else 10)]
    print(f"used VCPU of {CAPACITY}, by round: {rounds}")  # noqa: T201
    sys.exit(max(rounds) > CAPACITY)
