"""What of a cloud is sold to each project, by tier. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.model.names import PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.sold.sold import SoldCloud


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSale:
    """What the servers of a project have, of a tier.

    :param project: the id of the project; empty for allocations that are not those of a server on
        its host: the source of a move, what an evacuation left, and consumers unknown to Nova.
    :param amounts: by resource class.
    :param parts: ``amounts`` as parts of what all consumers of the cloud have, from 0 to 1.
    """

    project: str
    tier: str
    servers: int
    amounts: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)


def project_sales(cloud: SoldCloud, projects: Mapping[str, str]) -> list[ProjectSale]:
    """Return the sales of each project, of the project with the greatest parts first.

    A project counts by its part of the shares, then of the vCPUs. Consumers without a project come
    last.

    :param projects: the id of the project by the id of the consumer.
    """
    amounts: dict[tuple[str, str], Counter[str]] = {}
    consumers: dict[tuple[str, str], set[str]] = {}
    sold = Counter[str]()
    for part in cloud.parts:
        is_sold = (part.consumer, part.host) not in cloud.unsold
        key = projects.get(part.consumer, "") if is_sold else "", part.tier
        consumers.setdefault(key, set()).add(part.consumer)
        amounts.setdefault(key, Counter())[part.resource_class] += part.amount
        sold[part.resource_class] += part.amount
    amounts_by_project: dict[str, Counter[str]] = {}
    for (project, _), tier_amounts in amounts.items():
        amounts_by_project.setdefault(project, Counter()).update(tier_amounts)

    def place(key: tuple[str, str]) -> tuple[object, ...]:
        project, tier = key
        whole, tier_amounts = amounts_by_project[project], amounts[key]
        order = (-whole[name] for name in (VCPU_SHARES, VCPU, PCPU))
        return (not project, *order, project, -tier_amounts[VCPU_SHARES], tier)

    return [
        ProjectSale(
            project=key[0],
            tier=key[1],
            servers=len(consumers[key]),
            amounts=amounts[key],
            parts={name: amount / sold[name] for name, amount in amounts[key].items()},
        )
        for key in sorted(amounts, key=place)
    ]
