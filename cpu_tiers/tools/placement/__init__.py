"""Placement over HTTP."""
