"""Sphinx configuration."""

project = "cpu-tiers"
author = "the cpu-tiers developers"
copyright = author  # noqa: A001  # Sphinx's own name
extensions = [
    "oslo_config.sphinxext",
    "reno.sphinxext",
    "sphinx.ext.autodoc",
    "sphinx.ext.graphviz",
]
html_theme = "alabaster"
nitpicky = False

man_pages = [
    ("cli", name, "CPU performance tiers for OpenStack Nova", author, 1)
    for name in ("cpu-tiers", "cpu-tiers-status")
]
man_pages.append(
    ("openstack-client", "openstack-cpu-tier", "cpu-tiers in the openstack client", author, 1)
)

# The look of all pictures; each file in diagrams/ has only its own boxes and arrows.
graphviz_output_format = "svg"
graphviz_dot_args = [
    *(f"-{kind}fontname=DejaVu Sans,Verdana,sans-serif" for kind in "GNE"),
    *("-Nshape=box", "-Nstyle=rounded,filled", "-Nfontsize=10", "-Efontsize=9"),
    *("-Ncolor=#555555", "-Ecolor=#555555", "-Gnodesep=0.25", "-Granksep=0.3"),
]
