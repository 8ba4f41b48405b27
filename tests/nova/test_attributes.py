"""Attributes of Nova's objects: verified before a service wraps a function."""

import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest
from nova.compute import resource_tracker
from nova.scheduler import host_manager, utils

from cpu_tiers.conf import filter_scheduler, weigher
from cpu_tiers.nova import options
from cpu_tiers.nova.compute.features import COMPUTE
from cpu_tiers.nova.features import Attribute, Service
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.seams import SeamMismatch
from tests.nova.wrapping import wrapped


class Request:
    def __init__(self, *names: str) -> None:
        self.groups = dict.fromkeys(names)

    @property
    def policy(self) -> str:
        return "none"


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of a service, with a class."""
    fake = ModuleType("fake_nova")
    fake.Request = Request  # type: ignore[attr-defined]
    fake.Plain = type("Plain", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_nova", fake)


def attribute(
    name: str,
    kind: type | None = None,
    *arguments: str,
    owner: str = "Request",
    module: str = "fake_nova",
) -> Attribute:
    return Attribute(f"{module}:{owner}", name, kind, arguments)


@pytest.mark.parametrize(
    "fitting",
    [
        pytest.param(attribute("groups", dict), id="of a new object"),
        pytest.param(attribute("groups", dict, "a", "b"), id="with arguments"),
        pytest.param(attribute("groups"), id="in the code of the constructor"),
        pytest.param(attribute("policy"), id="a property"),
    ],
)
def test_an_attribute_that_fits(fitting: Attribute) -> None:
    fitting.verify()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        pytest.param(
            attribute("groups", list),
            "groups was expected to be of type list, but it is a dict",
            id="another type",
        ),
        pytest.param(attribute("gone", dict), "gone does not exist", id="not in a new object"),
        pytest.param(attribute("gone"), "gone does not exist", id="not in the constructor"),
        pytest.param(
            attribute("groups", owner="Plain"),
            "groups does not exist",
            id="no constructor",
        ),
        pytest.param(attribute("groups", owner="Gone"), "does not exist", id="no such class"),
        pytest.param(attribute("groups", module="gone"), "does not exist", id="no such module"),
    ],
)
def test_an_attribute_that_does_not_fit_is_named(wrong: Attribute, reason: str) -> None:
    with pytest.raises(SeamMismatch, match=re.escape(reason)) as caught:
        wrong.verify()
    assert f"cpu-tiers does not fit Nova {version('nova')}: {wrong} " in str(caught.value)


@pytest.mark.parametrize("service", [SCHEDULER, COMPUTE])
def test_the_attributes_of_a_service_fit_the_installed_nova(service: Service) -> None:
    needed = {each for feature in service.features for each in feature.attributes}
    assert len(needed) >= 5
    for each in needed:
        each.verify()


def without(name: str, original: Callable[..., None]) -> Callable[..., None]:
    def constructor(self: object, *arguments: object) -> None:
        original(self, *arguments)
        delattr(self, name)

    return constructor


@pytest.mark.parametrize(
    ("owner", "name", "service"),
    [
        (utils.ResourceRequest, "_same_subtree", SCHEDULER),
        (host_manager.HostState, "allocation_candidates", SCHEDULER),
        (resource_tracker.ResourceTracker, "provider_configs", COMPUTE),
    ],
)
def test_a_service_does_not_start_without_an_attribute(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, service: Service
) -> None:
    for module in (filter_scheduler, weigher):  # nova-scheduler reads whether it needs a feature
        options.register(module)
    monkeypatch.setattr(owner, "__init__", without(name, owner.__init__))
    with pytest.raises(SeamMismatch, match=rf"{owner.__name__}\.\w+ does not exist"):
        service.turn_on(service.features)
    assert wrapped() == []
