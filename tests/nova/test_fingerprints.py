"""Bodies of Nova's functions: the same through comments and hints, another through code."""

import inspect
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from nova.virt.libvirt import migration

from cpu_tiers.nova.api.features import API
from cpu_tiers.nova.compute.features import COMPUTE, GUEST_WEIGHTS
from cpu_tiers.nova.fingerprints import fingerprint, known
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.seams import function_of
from tests.nova.wrapping import all_seams, wrapped

PLAIN = """
def resize(self, host, quiet=False):
    count = 1
    return f"{host} {count:d}"
"""


@pytest.mark.parametrize(
    "equal",
    [
        pytest.param(
            """
def resize(self, host: str, quiet: bool = False) -> str:
    '''Resize.'''
    # a comment
    count: int = (1)
    return f'{host} {count:d}'
""",
            id="docstring, comment, hints and quotes",
        ),
        pytest.param(PLAIN.replace("\n", "\n    "), id="a method, indented as in its class"),
    ],
)
def test_equal_bodies_have_equal_fingerprints(equal: str) -> None:
    assert fingerprint(equal.removeprefix("\n")) == fingerprint(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("count = 1", "count = 2", id="a number"),
        pytest.param("{host} ", "{host}_", id="a text"),
        pytest.param("quiet=False", "quiet=True", id="a default"),
        pytest.param("def resize", "@utils.synchronized\ndef resize", id="a decorator"),
        pytest.param("    count = 1\n", "", id="a line less"),
        pytest.param("{count:d}", "{count:x}", id="a format"),
    ],
)
def test_another_body(old: str, new: str) -> None:
    assert fingerprint(PLAIN.replace(old, new)) != fingerprint(PLAIN)


def test_a_text_of_several_lines_at_the_margin() -> None:
    method = "    def show(self):\n        return '''a\nb'''\n"
    function = "def show(self):\n    return 'a\\nb'\n"
    assert fingerprint(method) == fingerprint(function)


def test_the_fingerprints_of_the_installed_nova_are_known() -> None:
    release = version("nova")
    for seam in all_seams():
        body = fingerprint(inspect.getsource(function_of(seam)))
        assert body == known()[str(seam)][release], str(seam)


def test_a_known_nova_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cpu_tiers"):
        for service in (API, SCHEDULER, COMPUTE):
            service.turn_on(service.features)
    assert caplog.messages == []


def _update_quota_xml(instance: Any, xml_doc: Any) -> Any:
    return xml_doc


def test_an_unknown_body_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(migration, "_update_quota_xml", _update_quota_xml)
    name = "nova.virt.libvirt.migration._update_quota_xml"
    with caplog.at_level(logging.WARNING, "cpu_tiers"):
        COMPUTE.turn_on(COMPUTE.features)
        COMPUTE.turn_on([GUEST_WEIGHTS])
    (message,) = caplog.messages
    assert f"Nova {version('nova')} has other code than the releases" in message
    assert f" in {name};" in message
    assert name in wrapped()


def _raise(error: Exception) -> str:
    raise error


@pytest.mark.parametrize(
    "getsource",
    [
        pytest.param(lambda _: _raise(OSError("could not get source code")), id="no file"),
        pytest.param(lambda _: _raise(TypeError("not a function")), id="compiled"),
        pytest.param(lambda _: "def (", id="lines of a file that was replaced"),
        pytest.param(lambda _: "x = 1", id="lines without a function"),
    ],
)
def test_a_nova_without_sources_causes_no_warning(
    getsource: Callable[[object], str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(migration, "_update_quota_xml", _update_quota_xml)
    monkeypatch.setattr(inspect, "getsource", getsource)
    with caplog.at_level(logging.WARNING, "cpu_tiers"):
        COMPUTE.turn_on([GUEST_WEIGHTS])
    assert caplog.messages == []
