"""Reads extra specs and image properties, and refuses invalid values."""
