"""A guest on its host: its topology, its pinning, its weight and its entitlement. Pure."""
