"""Scrapes of ``host watch`` while 1,000 slow clients are connected, for ten minutes.

Usage: ``python benchmarks/slow_clients.py [CLIENTS [SECONDS]]``; needs the extra ``prometheus``. A
client sends a byte every second, never ends its request, and connects anew when it is cut off.
"""

import resource
import socket
import sys
import time
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

from cpu_tiers.tools.host.metrics_server import Address, answering, bound


class Nothing:
    """A collector without metrics: the metrics of the process remain."""

    def collect(self) -> list[object]:
        """Return no metrics."""
        return []


def annoy(address: Address, number: int, seconds: float) -> None:
    """Keep slow clients connected."""
    clients: list[socket.socket | None] = [None] * number
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for place, client in enumerate(clients):
            try:
                if client is None:
                    client = socket.create_connection(address, timeout=1)
                client.send(b"X")
                clients[place] = client
            except OSError:
                clients[place] = None
                if client:
                    client.close()
        time.sleep(1)
    for client in clients:
        if client:
            client.close()


def main(number: int = 1000, seconds: float = 600.0) -> None:
    """Scrape once a second, and print the slowest answer, the failures and what grew."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    times, failed, most = [], 0, 0
    with bound(Address("127.0.0.1", 0), Nothing()) as server, answering(server) as address:  # type: ignore[arg-type]  # a list iterates
        annoyance = Thread(target=annoy, args=[address, number, seconds])
        annoyance.start()
        time.sleep(5)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        while annoyance.is_alive():
            start = time.monotonic()
            try:
                with urlopen(f"http://{address}/metrics", timeout=10) as answer:
                    answer.read()
                times.append(time.monotonic() - start)
            except OSError:
                failed += 1
            most = max(most, len(server._clients))
            time.sleep(1)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    times.sort()
    print(
        f"{number} slow clients, {seconds:.0f} s: scrapes {len(times)}, failed {failed},"
        f" median {times[len(times) // 2] * 1000:.0f} ms, slowest {times[-1] * 1000:.0f} ms;"
        f" clients at once {most}, memory +{grown} KiB,"
        f" open files {len(list(Path('/proc/self/fd').iterdir()))}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
