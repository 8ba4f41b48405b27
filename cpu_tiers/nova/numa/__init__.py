"""What nova-scheduler and nova-compute know of NUMA nodes; imported where an option needs it."""
