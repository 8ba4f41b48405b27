"""The part of ``cpu-tiers-status upgrade check`` about functions of the installed Nova."""

import warnings

from oslo_upgradecheck.upgradecheck import Code, Result

from cpu_tiers.tools.nova.nova_command import NovaMissing, quiet, require_nova

_COMMAND = "cpu-tiers-status upgrade check of functions"


def check_functions() -> Result:
    """Warn about features of cpu-tiers that do not fit the installed Nova, on or off."""
    try:
        require_nova(_COMMAND)
    except NovaMissing as error:
        return Result(Code.FAILURE, str(error))
    with quiet(), warnings.catch_warnings(record=True):  # as in nova_command.py
        from cpu_tiers.nova.api.features import API
        from cpu_tiers.nova.compute.features import COMPUTE
        from cpu_tiers.nova.features import refusal_of
        from cpu_tiers.nova.scheduler.features import SCHEDULER

        features: dict[str, list[str]] = {}
        for service in (API, SCHEDULER, COMPUTE):
            for feature in service.features:
                if refusal := refusal_of(feature):
                    names = features.setdefault(refusal, [])
                    names.append(f"{feature.name} of {service.name}")
    lines = [f"{refusal}. Features: {', '.join(names)}" for refusal, names in features.items()]
    return Result(Code.WARNING, ".\n".join(lines)) if lines else Result(Code.SUCCESS)
