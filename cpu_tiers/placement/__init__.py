"""Placement over HTTP: the client, provider-tree sync and allocations."""
