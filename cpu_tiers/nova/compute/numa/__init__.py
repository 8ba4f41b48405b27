"""The NUMA nodes of a host in Placement; a host that reports NUMA nodes imports the package."""
