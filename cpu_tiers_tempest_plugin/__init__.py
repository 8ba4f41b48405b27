"""The Tempest plugin: tests of CPU performance tiers against any cloud.

Apart from ``cpu_tiers``: the plugin needs Tempest, and no service and no command imports it.
Spec: cpu-performance-service-levels, "Testing".
"""
