"""What nova-scheduler and nova-compute know of NUMA nodes; imported only for NUMA nodes."""
