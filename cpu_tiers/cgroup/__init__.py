"""What the kernel of this machine says about guests, read from /proc and /sys.

Nothing is written here. See :func:`~cpu_tiers.cgroup.host.read_host`.
"""
