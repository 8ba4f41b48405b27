"""A stream of requests against a cloud in memory, under a policy. Pure."""
