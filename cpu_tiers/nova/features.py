"""Features: the parts of cpu-tiers that nova.conf switches on, each with its seams.

Each service of Nova has a table of its features (``features.py`` in
``nova/scheduler/``, ``nova/compute/`` and ``nova/api/``). At its start the service
imports and installs the seams of the features that nova.conf switches on, and no other seam.
"""

import dis
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from cpu_tiers.conf import compute
from cpu_tiers.nova import options, seams
from cpu_tiers.nova.fingerprints import warn_of_unknown
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam, SeamMismatch, does_not_fit

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that the constructor of a class of Nova sets, or a property of the class.

    Verified at the start: Python raises no error if a wrapper sets what Nova does not read.
    ``docs/reference/seams.toml`` has the use of each attribute.

    :param owner: the class, such as ``nova.scheduler.utils:ResourceRequest``.
    :param kind: the type of the value in a new object. ``None`` if a new object would do more
        than keep values: then only the code of the constructor is looked at.
    :param arguments: the arguments of the constructor.
    """

    owner: str
    name: str
    kind: type | None = None
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the full name of the attribute."""
        return f"{self.owner.replace(':', '.')}.{self.name}"

    def verify(self) -> None:
        """Check that objects of the class have the attribute, with a value of the expected type.

        :raises SeamMismatch: the objects do not have it, or Nova has no such class.
        """
        try:
            owner = resolve_name(self.owner)
            if self.kind is None:
                if not hasattr(owner, self.name) and self.name not in _assigned(owner.__init__):
                    raise AttributeError
                return
            value = getattr(owner(*self.arguments), self.name)
        except (AttributeError, ModuleNotFoundError, TypeError) as error:
            raise SeamMismatch(does_not_fit(f"{self} does not exist")) from error
        if not isinstance(value, self.kind):
            expected, kind = self.kind.__name__, type(value).__name__
            raise SeamMismatch(
                does_not_fit(f"{self} was expected to be of type {expected}, but it is a {kind}")
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A part of cpu-tiers in a service of Nova, whose modules are imported if it is on.

    :param name: the name in the log and in the documentation.
    :param wrappers: the names of all seams that the feature needs: a module, and in the module a
        seam or a tuple of seams, such as ``cpu_tiers.nova.cpu_policies:SEAMS``. Features may have
        seams in common.
    :param option: the option of nova.conf that must be set, such as
        ``filter_scheduler.require_host_traits``; empty for a feature that needs no option.
    :param condition: tells from the configuration what must be true beside the option.
    :param switch: what switches the feature on, for the documentation; the option by default.
    :param groups: further groups of nova.conf with options of cpu-tiers that the feature reads.
    :param attributes: the attributes of Nova's objects that the feature reads or writes.
    :param is_needed: tells from the configuration whether the service must not start without the
        feature, if the feature is on and does not fit the installed Nova (decision D107).
    """

    name: str
    wrappers: tuple[str, ...]
    option: str = ""
    condition: Callable[[cfg.ConfigOpts], bool] = lambda _: True
    switch: str = ""
    groups: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    is_needed: Callable[[cfg.ConfigOpts], bool] = lambda _: True

    def refusal(self) -> str:
        """Return why the feature does not fit the installed Nova; empty if the feature fits."""
        try:
            seams.verify(self.seams)
            for attribute in self.attributes:
                attribute.verify()
        except SeamMismatch as error:
            return str(error)
        return ""

    def is_on(self, conf: cfg.ConfigOpts) -> bool:
        """Tell whether the feature is on, and register the options that the feature reads.

        :raises ConfigFileValueError: an option is malformed.
        """
        group, _, key = self.option.partition(".")
        if group:
            options.register_group(group)
        is_on = (not group or bool(conf[group][key])) and self.condition(conf)
        for further in self.groups if is_on else ():
            options.register_group(further)
        return is_on

    @property
    def switched_on_by(self) -> str:
        """Return what switches the feature on, for the documentation."""
        group, _, key = self.option.partition(".")
        return self.switch or f"``[{group}] {key}``"

    @property
    def seams(self) -> tuple[Seam, ...]:
        """Import the modules of the feature, and return its seams."""
        named = map(resolve_name, self.wrappers)
        return tuple(
            seam for each in named for seam in ((each,) if isinstance(each, Seam) else each)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service of Nova with its features."""

    name: str
    features: tuple[Feature, ...]

    def start(self) -> None:
        """Install the seams of the features that nova.conf switches on.

        :raises SeamMismatch: a seam or an attribute does not fit the installed Nova. No function
            is wrapped.
        :raises ConfigFileValueError: an option is malformed.
        """
        options.register(compute)
        self.turn_on([feature for feature in self.features if feature.is_on(CONF)])

    def turn_on(self, features: Sequence[Feature]) -> None:
        """Install the seams of features, and log all newly wrapped functions in a single line.

        A second line, a warning, names the functions of Nova with an unknown body.

        :raises SeamMismatch: a seam or an attribute does not fit the installed Nova. No function
            is wrapped.
        """
        features = self._fitting(features)
        needed = dict.fromkeys(seam for feature in features for seam in feature.seams)
        wrapped = sorted({str(seam) for seam in seams.install(needed)})
        if wrapped:
            warn_of_unknown(needed)
            LOG.info(
                "cpu-tiers in %s has the features %s and wraps %s of Nova %s",
                self.name,
                ", ".join(feature.name for feature in features),
                ", ".join(wrapped),
                version("nova"),
            )

    def _fitting(self, features: Sequence[Feature]) -> list[Feature]:
        """Return the features that fit the installed Nova.

        A feature that no option needs is left out, with an error in the log.

        :raises SeamMismatch: a feature that is needed does not fit; with all such features.
        """
        refusals = {feature: refusal for feature in features if (refusal := feature.refusal())}
        fitting = [feature for feature in features if feature not in refusals]
        needed = []
        for feature, refusal in refusals.items():
            if feature.is_needed(CONF):
                switch = re.sub(r" \(:doc:`\w+`\)|``", "", feature.switched_on_by)  # no markup
                others = ", ".join(each.name for each in fitting) or "of Nova alone"
                needed.append(
                    f"{refusal}. The feature {feature.name} needs it ({switch})."
                    f" Without the feature, {self.name} has the features {others}"
                )
            else:
                LOG.error(
                    "%s. %s starts without the feature %s, which no option of nova.conf needs",
                    refusal,
                    self.name,
                    feature.name,
                )
        if needed:
            raise SeamMismatch("\n".join(needed))
        return fitting


def _assigned(constructor: Any) -> frozenset[str]:
    """Return the names of the attributes that a constructor assigns, of whatever object."""
    code = getattr(inspect.unwrap(constructor), "__code__", None)
    if code is None:  # the class has no constructor of its own
        return frozenset()
    instructions = dis.get_instructions(code)
    return frozenset(each.argval for each in instructions if each.opname == "STORE_ATTR")


CPU_POLICIES = Feature(
    name="CPU policies",
    option="compute.extend_cpu_policies",
    wrappers=("cpu_tiers.nova.cpu_policies:SEAMS",),
)
"""The feature of nova-scheduler and nova-compute; nova-api has a seam more."""
