"""Sphinx configuration."""

from importlib.metadata import version as version_of
from pathlib import Path

project = "cpu-tiers"
author = "the cpu-tiers developers"
copyright = author  # noqa: A001  # Sphinx's own name
version = release = version_of("cpu-tiers")
extensions = [
    "openstackdocstheme",
    "oslo_config.sphinxext",
    "reno.sphinxext",
    "sphinx.ext.autodoc",
    "sphinx.ext.graphviz",
]
html_theme = "openstackdocs"
html_theme_options = {
    "analytics_tracking_code": "",  # the default reports each reader to a server of others
    "display_badge": False,
    "show_other_versions": False,
    "sidebar_search": True,
}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_search_scorer = str(Path(__file__).with_name("search-scorer.js"))
html_last_updated_fmt = "%Y-%m-%d"
templates_path = ["_templates"]
exclude_patterns = ["_build"]
openstackdocs_auto_name = False  # the name of the project is above
openstackdocs_auto_version = False  # and so is the version
openstackdocs_repo_name = ""  # no page links a list of bugs or a repository of opendev.org
openstackdocs_use_storyboard = False
nitpicky = False

man_pages = [
    ("cli/cpu-tiers", name, "CPU performance tiers for OpenStack Nova", author, 1)
    for name in ("cpu-tiers", "cpu-tiers-status")
]
man_pages.append(
    ("cli/openstack-client", "openstack-cpu-tier", "cpu-tiers in the openstack client", author, 1)
)

# The look of all pictures; each file in diagrams/ has only its own boxes and arrows.
graphviz_output_format = "svg"
graphviz_dot_args = [
    *(f"-{kind}fontname=DejaVu Sans,Verdana,sans-serif" for kind in "GNE"),
    *("-Nshape=box", "-Nstyle=rounded,filled", "-Nfontsize=10", "-Efontsize=9"),
    *("-Ncolor=#555555", "-Ecolor=#555555", "-Gnodesep=0.25", "-Granksep=0.3"),
]
