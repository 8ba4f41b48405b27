"""Sphinx configuration."""

project = "cpu-tiers"
author = "the cpu-tiers developers"
copyright = author  # noqa: A001  # Sphinx's own name
extensions = ["oslo_config.sphinxext", "reno.sphinxext", "sphinx.ext.autodoc"]
html_theme = "alabaster"
nitpicky = False
