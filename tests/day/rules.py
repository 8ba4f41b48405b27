"""The alert rules with shorter windows, so that a day of the rules passes in minutes."""

import re

_IN_RANGE = re.compile(r"(?<=\[)(\d+)([smhd])(?=\])")
_FOR = re.compile(r"(?<=for: )(\d+)([smhd])$", re.MULTILINE)
_SECONDS = re.compile(r"(?<=> )(\d+)$", re.MULTILINE)
"""The rules compare with whole numbers only of seconds, but for 0, which stays."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def compressed(rules: str, factor: int) -> str:
    """Return rules whose windows are a part of the windows of the given rules.

    Each range in brackets, each ``for:`` and each number of seconds in a comparison is divided by
    the factor. All other thresholds, which are parts and CPUs, stay.

    :param rules: the text of a file of rules, as ``etc/prometheus/cpu-tiers.rules.yml``.
    """

    def shorter(match: re.Match[str]) -> str:
        milliseconds = 1000 * int(match[1]) * _UNITS[match[2]] // factor
        return f"{milliseconds}ms"

    ranges = _IN_RANGE.sub(shorter, rules)
    waits = _FOR.sub(shorter, ranges)
    return _SECONDS.sub(lambda match: f"{int(match[1]) / factor:g}", waits)
