"""Features: the parts of cpu-tiers that nova.conf switches on, each with its seams.

Each service of Nova has a table of its features (``features.py`` in
``nova/scheduler/``, ``nova/compute/`` and ``nova/api/``). At its start the service
installs the seams of the features that nova.conf switches on, and no other seam.
"""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from oslo_config import cfg

from cpu_tiers.conf import compute
from cpu_tiers.nova import cpu_policies, options, seams
from cpu_tiers.nova.attributes import Attribute
from cpu_tiers.nova.fingerprints import warn_of_unknown
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam, SeamMismatch

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A part of cpu-tiers in a service of Nova.

    :param name: the name in the log and in the documentation.
    :param switch: the option or the fact that switches the feature on, for the documentation.
    :param seams: all seams that the feature needs. Features may have seams in common.
    :param is_on: tells from the configuration whether the feature is on.
    :param attributes: the attributes of Nova's objects that the feature reads or writes.
    :param is_needed: tells from the configuration whether the service must not start without the
        feature, if the feature is on and does not fit the installed Nova (decision D107).
    """

    name: str
    switch: str
    seams: tuple[Seam, ...]
    is_on: Callable[[cfg.ConfigOpts], bool]
    attributes: tuple[Attribute, ...] = ()
    is_needed: Callable[[cfg.ConfigOpts], bool] = lambda _conf: True

    def verify(self) -> None:
        """Check that the seams and the attributes fit the installed Nova.

        :raises SeamMismatch: a seam or an attribute does not fit.
        """
        seams.verify(self.seams)
        for attribute in self.attributes:
            attribute.verify()


def of_option(
    name: str, option: str, seams: tuple[Seam, ...], attributes: tuple[Attribute, ...] = ()
) -> Feature:
    """Return a feature that is on where a registered option of nova.conf is set.

    :param option: such as ``filter_scheduler.require_host_traits``.
    """
    group, _, key = option.partition(".")
    return Feature(
        name=name,
        switch=f"``[{group}] {key}``",
        seams=seams,
        attributes=attributes,
        is_on=lambda conf: bool(conf[group][key]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service of Nova with its features.

    :param name: such as ``nova-scheduler``.
    """

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
        refusals = {feature: refusal for feature in features if (refusal := refusal_of(feature))}
        fitting = [feature for feature in features if feature not in refusals]
        needed = []
        for feature, refusal in refusals.items():
            if feature.is_needed(CONF):
                needed.append(
                    f"{refusal}. The feature {feature.name} needs it ({_plain(feature.switch)})."
                    f" Without the feature, {self.name} has the features {_names(fitting)}"
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


def refusal_of(feature: Feature) -> str:
    """Return why a feature does not fit the installed Nova; empty if the feature fits."""
    try:
        feature.verify()
    except SeamMismatch as error:
        return str(error)
    return ""


def _names(features: Iterable[Feature]) -> str:
    return ", ".join(feature.name for feature in features) or "of Nova alone"


def _plain(text: str) -> str:
    """Return a text of the documentation without its markup."""
    return re.sub(r" \(:doc:`\w+`\)|``", "", text)


def is_always_on(_conf: cfg.ConfigOpts) -> bool:
    """Return ``True``: the feature is on wherever nova.conf names the class of cpu-tiers."""
    return True


CPU_POLICIES = Feature(
    name="CPU policies",
    switch="``[compute] extend_cpu_policies``",
    seams=cpu_policies.SEAMS,
    is_on=options.extends_cpu_policies,
)
"""The feature of nova-scheduler and nova-compute; nova-api has a seam more."""
