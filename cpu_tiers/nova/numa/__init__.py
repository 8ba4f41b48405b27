"""NUMA nodes in an unmodified Nova: reported, asked for, and pinned as they were allocated.

Spec: numa-topology-with-rps; the obstacles in Nova's way, and what is done
about each, are in ``docs/numa.rst``.
"""
