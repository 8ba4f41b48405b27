"""Read the cgroups and the threads of guests from /proc and /sys of this machine.

Nothing is written. See :func:`~cpu_tiers.tools.cgroup.host.read_host`.
"""
