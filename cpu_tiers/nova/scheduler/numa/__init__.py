"""The query for NUMA nodes, and candidates with nodes; ``query_placement_for_numa`` imports it."""
