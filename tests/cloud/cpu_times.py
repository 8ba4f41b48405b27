"""Prints the CPU time of each running guest of this host, a line of JSON every fifth of a second.

A line has the weight and the nanoseconds of the control group of each guest, by the server's uuid.
Runs in the cloud, with the Python of its services, until it is killed. Uses nothing of cpu-tiers.
"""

import json
import time

import libvirt

INTERVAL = 0.2

if __name__ == "__main__":
    connection = libvirt.openReadOnly("qemu:///system")
    while True:
        guests = {}
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_RUNNING):
            try:
                weight = domain.schedulerParameters()["cpu_shares"]
                spent = domain.getCPUStats(True)[0]["cpu_time"]
            except libvirt.libvirtError:  # it has just ended
                continue
            guests[domain.UUIDString()] = weight, spent
        print(json.dumps(guests), flush=True)  # noqa: T201
        time.sleep(INTERVAL)
