"""A recorded GPU cluster, and policies that place its tasks; for ``benchmarks/trace.py``."""
