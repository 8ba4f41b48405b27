"""Why a host has no room for a server. Pure."""
