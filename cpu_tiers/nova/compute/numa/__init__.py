"""The NUMA nodes of a host in Placement; a host that reports its nodes imports it."""
