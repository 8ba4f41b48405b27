"""``cpu-tiers cloud show --group-by project``: what is sold to each project, for a bill.

Nova says whose the servers are, and on which host each is. Source: API reference of Keystone,
"List projects".
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console

from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.cloud.cloud_text import print_report
from cpu_tiers.tools.compute_api import ComputeApiUnavailable, ObjectKind, endpoint_of, get, part
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.sold.cloud_report import Figure, ReportTable, Value
from cpu_tiers.tools.sold.project_sales import ProjectSale
from cpu_tiers.tools.sold.sold_sums import percent

LOG = logging.getLogger(__name__)

COLUMNS = (
    *("project", "name", "tier", "servers", "vcpus", "shares", "dedicated_cpus", "memory_mb"),
    *("part_of_vcpus", "part_of_shares"),
)
_PROJECT = ObjectKind("Keystone", "identity", "a project", "/projects", "/projects")


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
    rows: list[Sequence[Value]] = []
    for sale in sales:
        name = names.get(sale.project, sale.project) or "not of a server"
        if counts[name] > 1:  # another domain has a project with the name
            name = f"{name} ({sale.project})"
        vcpus, shares, dedicated = (sale.amounts.get(key, 0) for key in (VCPU, VCPU_SHARES, PCPU))
        part_of_all = Figure(percent(sale.parts[VCPU_SHARES]) if VCPU_SHARES in sale.parts else "")
        rows.append((name, sale.tier, sale.servers, vcpus, shares, part_of_all, dedicated))
    columns = ("project", "tier", "servers", "vCPUs", "shares", "of all", "PCPU")
    table = ReportTable("What is sold to each project", columns, rows)
    print_report(console, table, show_all=show_all)
