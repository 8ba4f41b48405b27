"""Requests over HTTP: the repeated requests and the followed redirects."""
