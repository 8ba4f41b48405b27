"""Whether a cloud has room for a server, on which places, and for how many. Pure."""
