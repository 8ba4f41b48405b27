"""The weighers that nova-scheduler loads: Nova's ``[filter_scheduler] weight_classes``.

A list without ``nova.scheduler.weights.all_weighers`` has only the weighers that it names, and a
weigher that the list names twice counts twice. Source: ``nova/loadables.py`` and
``nova/weights.py``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from oslo_config import cfg

ALL_WEIGHERS = "nova.scheduler.weights.all_weighers"
OUR_CLASS = "cpu_tiers.ResourceProviderWeigher"

OURS = "resource_provider"
"""The name of the weigher of cpu-tiers, without ``_weight_multiplier`` of its option."""

OPTION = cfg.ListOpt("weight_classes", default=[ALL_WEIGHERS])

_VERSION = "nova.scheduler.weights.hypervisor_version"
_CLASSES_OF_NOVA: Mapping[str, str] = MappingProxyType(
    {
        "nova.scheduler.weights.ram.RAMWeigher": "ram",
        "nova.scheduler.weights.cpu.CPUWeigher": "cpu",
        "nova.scheduler.weights.disk.DiskWeigher": "disk",
        "nova.scheduler.weights.num_instances.NumInstancesWeigher": "num_instances",
        f"{_VERSION}.HypervisorVersionWeigher": "hypervisor_version",
    }
)
"""The weighers of Nova whose data a command has, with the beginning of the multiplier's name."""


class LoadedWeighers(NamedTuple):
    """The weighers of nova-scheduler.

    :param times: how often a weigher is loaded, by the beginning of the multiplier's name.
    :param unknown: the named classes and functions that no command knows.
    """

    times: Mapping[str, int]
    unknown: tuple[str, ...] = ()

    @property
    def have_ours(self) -> bool:
        """Tell whether nova-scheduler loads the weigher of cpu-tiers."""
        return bool(self.times.get(OURS))

    def multipliers(self, options: Any, names: Iterable[str]) -> dict[str, float]:
        """Return the multipliers of those weighers of ``names`` that are loaded.

        :param options: the values of ``[filter_scheduler]``.
        """
        return {
            name: self.times[name] * options[f"{name}_weight_multiplier"]
            for name in names
            if self.times.get(name)
        }


def loaded_weighers(classes: Iterable[str]) -> LoadedWeighers:
    """Return the weighers that a list of classes and functions loads."""
    times, unknown = Counter[str](), []
    for name in classes:
        if name == ALL_WEIGHERS:
            times.update(_CLASSES_OF_NOVA.values())
        elif name.startswith("cpu_tiers."):
            times[OURS] += 1
        elif name in _CLASSES_OF_NOVA:
            times[_CLASSES_OF_NOVA[name]] += 1
        else:
            unknown.append(name)
    return LoadedWeighers(times, tuple(dict.fromkeys(unknown)))


def notes_on_weighers(options: Any, *, wants_ours: bool = False) -> list[str]:
    """Return what an order of hosts leaves out because of the loaded weighers.

    :param options: the values of ``[filter_scheduler]``.
    :param wants_ours: the flavor has preferred or avoided traits.
    """
    weighers = loaded_weighers(options.weight_classes)
    notes = []
    if not weighers.have_ours and (wants_ours or options[f"{OURS}_weight_multiplier"]):
        notes.append(
            "nova-scheduler does not load the weigher of cpu-tiers, so scores and preferred or"
            " avoided traits decide nothing: [filter_scheduler] weight_classes has no"
            f" {OUR_CLASS}"
        )
    if weighers.unknown:
        notes.append(
            "the weights of these weighers in [filter_scheduler] weight_classes are not known"
            f" here, and may change the order: {', '.join(weighers.unknown)}"
        )
    return notes
