"""The scorings by what a server costs a host: ``best-fit`` and ``fragmentation``."""
