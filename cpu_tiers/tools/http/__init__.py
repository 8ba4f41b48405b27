"""Requests over HTTP: which requests are repeated, and which redirects are followed."""
