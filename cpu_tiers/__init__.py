"""CPU performance tiers, mixed CPUs, NUMA and bandwidth for an unmodified Nova.

The house is described in ``docs/house.rst``. Nothing is imported and nothing
is installed when this package is imported.
"""
