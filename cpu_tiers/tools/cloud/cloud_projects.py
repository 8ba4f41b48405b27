"""``cpu-tiers cloud show --group-by project``: what is sold to each project, for a bill.

Source: API reference of Nova, "Usage reports": from the microversion 2.40 on, an answer has the
servers of one page, and its link to the next page has the marker of that page. API reference of
Keystone, "List projects".
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from rich.console import Console
from rich.text import Text

from cpu_tiers.errors import InvalidInput, printable
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.cloud.cloud_text import print_rest, print_table, text_table
from cpu_tiers.tools.compute_api import (
    PAGE,
    ComputeApiUnavailable,
    Document,
    ObjectKind,
    endpoint_of,
    get,
    part,
)
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.terminal import MOST_LINES, ProgressLine
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.sold.project_sales import ProjectSale
from cpu_tiers.tools.sold.sold_sums import percent

LOG = logging.getLogger(__name__)

COLUMNS = (
    *("project", "name", "tier", "servers", "vcpus", "shares", "dedicated_cpus", "memory_mb"),
    *("part_of_vcpus", "part_of_shares"),
)
_USAGE = ObjectKind(
    *("Nova's API", "compute", "a usage"),
    *("/os-simple-tenant-usage", "/os-simple-tenant-usage", "2.40"),
)
_PROJECT = ObjectKind("Keystone", "identity", "a project", "/projects", "/projects")
_WINDOW = timedelta(hours=1)
"""Nova lists the servers that ran in a window; its length allows for clocks that differ."""


class Owners(NamedTuple):
    """The projects of the servers of a cloud.

    :param projects: the id of the project by the id of the server.
    :param names: the name of the project by its id.
    """

    projects: Mapping[str, str]
    names: Mapping[str, str]


def read_owners(cloud: CloudSource) -> Owners:
    """Return the projects of the servers of a cloud, with their names.

    :raises InvalidInput: there is a snapshot in place of the cloud.
    """
    if cloud.snapshot is not None:
        raise InvalidInput.of(
            "--group-by project", "a snapshot has no projects", "ask the cloud itself"
        )
    with ProgressLine("asking Nova and Keystone for projects"):
        services = cloud.services()
        return Owners(read_projects(services), read_project_names(services))


def read_projects(services: Services) -> dict[str, str]:
    """Return the id of the project of each server, by the id of the server.

    A request has 1,000 servers. A server that has never started, or that started within the
    present second, is not among them: Nova rounds the end of its window down.
    """
    start = f"{datetime.now(UTC) - _WINDOW:%Y-%m-%dT%H:%M:%S}"
    query = {"detailed": "1", "limit": PAGE, "start": start}
    projects: dict[str, str] = {}
    markers = set[str]()
    while True:
        path = f"{_USAGE.list_path}?{urlencode(query)}"
        answer = get(services, _USAGE, path)
        for usage in part(answer, "tenant_usages", list, _USAGE, path):
            project = part(usage, "tenant_id", str, _USAGE, path)
            for server in part(usage, "server_usages", list, _USAGE, path):
                projects[part(server, "instance_id", str, _USAGE, path)] = project
        marker = _next_marker(answer)
        if not marker or marker in markers:
            return projects
        markers.add(marker)
        query["marker"] = marker


def _next_marker(answer: Document) -> str:
    """Return the marker of the next page; the address of the link is not followed."""
    links = answer.get("tenant_usages_links")
    for link in links if isinstance(links, list) else ():
        address = link.get("href") if isinstance(link, Mapping) else None
        if isinstance(address, str):
            return parse_qs(urlsplit(address).query).get("marker", [""])[0]
    return ""


def read_project_names(services: Services) -> dict[str, str]:
    """Return the names of all projects by their ids, with one request; none if it is refused."""
    try:
        has_version = endpoint_of(services, _PROJECT).rstrip("/").endswith("/v3")
        path = "/projects" if has_version else "/v3/projects"
        answer = get(services, _PROJECT, path)
        return {
            part(each, "id", str, _PROJECT, path): part(each, "name", str, _PROJECT, path)
            for each in part(answer, "projects", list, _PROJECT, path)
        }
    except ComputeApiUnavailable as error:
        LOG.warning("Projects have no names in the answer: %s", error)
        return {}


def project_rows(
    sales: Sequence[ProjectSale], names: Mapping[str, str]
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the columns and the rows; the consumers of no project have no id."""
    rows = list[tuple[object, ...]]()
    for sale in sales:
        amounts = (sale.amounts.get(name, 0) for name in (VCPU, VCPU_SHARES, PCPU, MEMORY_MB))
        parts = (round(sale.parts.get(name, 0.0), 6) for name in (VCPU, VCPU_SHARES))
        name = names.get(sale.project)
        rows.append((sale.project or None, name, sale.tier, sale.servers, *amounts, *parts))
    return COLUMNS, rows


def print_projects(
    console: Console, sales: Sequence[ProjectSale], names: Mapping[str, str], *, show_all: bool
) -> None:
    """Print a table of what is sold to each project, and to each of its tiers."""
    counts = Counter(names.values())
    table = text_table("project", "tier", "servers", "vCPUs", "shares", "of all", "PCPU")
    table.columns[1].justify = "left"
    for sale in sales if show_all else sales[:MOST_LINES]:
        name = names.get(sale.project, sale.project) or "no server of Nova"
        if counts[name] > 1:  # another domain has a project with the name
            name = f"{name} ({sale.project})"
        cells = (f"{sale.amounts.get(key, 0):,}" for key in (VCPU, VCPU_SHARES, PCPU))
        vcpus, shares, dedicated = cells
        part_of_all = percent(sale.parts.get(VCPU_SHARES)) if VCPU_SHARES in sale.parts else ""
        texts = (Text(printable(text)) for text in (name, sale.tier))
        table.add_row(*texts, f"{sale.servers:,}", vcpus, shares, part_of_all, dedicated)
    print_table(console, "What is sold to each project", table)
    print_rest(console, len(sales), show_all=show_all)
