"""Loads cpu-tiers into the process of Nova's own tests, as nova.conf and its services load it.

The options of cpu-tiers are set by the environment, which oslo.config reads above nova.conf.
The tests of Nova name their weighers and drivers themselves, with overrides that no option
beats, so two classes are put in place here: our weigher beside the weighers of every
``HostManager``, and our libvirt driver in the place of Nova's.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import nova.virt.libvirt
from nova import config, service
from nova.scheduler.host_manager import HostManager
from nova.tests.fixtures import libvirt as fake
from nova.tests.functional.fixtures import PlacementApiClient
from nova.virt.cpu_tiers import LibvirtDriver
from nova.virt.libvirt import driver

from cpu_tiers.conf.quota import UNIFIED_LIMITS
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova import features, seams
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher


def load() -> None:
    """Create our classes once, as each service does at its start, and put them in place.

    nova-api's validators are loaded already: by their entry point, when Nova imported its own.
    The configuration is forgotten in the end, because each test of Nova reads it anew.
    """
    config.parse_args(["nova"], [], configure_db=False, init_rpc=False)
    if "OS_QUOTA__COUNT_VCPU_SHARES" in os.environ:  # it has no effect with another driver
        config.CONF.set_override("driver", UNIFIED_LIMITS, "quota")
    service.setup_profiler("nova-api", "localhost")  # where cpu-tiers turns its features on
    config.CONF.clear_override("driver", "quota")
    join_the_weighers()
    ResourceProviderWeigher()
    own_static_methods()
    with fake.LibvirtFixture():
        LibvirtDriver(None)  # compares Nova's driver with what cpu-tiers expects
    keep_the_base_class()
    driver.LibvirtDriver = nova.virt.libvirt.LibvirtDriver = LibvirtDriver
    install_no_more()
    if "OS_LIBVIRT__REPORT_VCPU_SHARES" in os.environ:
        hide_unused_shares()
    config.CONF.reset()


def join_the_weighers() -> None:
    """Have every ``HostManager`` weigh by our weigher, too."""
    initialize = HostManager.__init__

    def with_ours(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        self.weighers = [*self.weighers, ResourceProviderWeigher()]

    HostManager.__init__ = with_ours


def install_no_more() -> None:
    """Have our classes, when a test creates them, look at no function of Nova again.

    A service does so once, at its start. Tests of Nova start services while functions of Nova
    are replaced by mocks, which have other parameters.
    """

    def nothing(*_args: Any, **_kwargs: Any) -> tuple[()]:
        return ()

    vars(seams).update(verify=nothing, install=nothing)
    features.Attribute.verify = nothing  # type: ignore[assignment]  # takes any arguments


def own_static_methods() -> None:
    """Give our driver the static methods of Nova's driver as attributes of its own class.

    ``fixtures.MonkeyPatch``, by which tests replace such a method, puts an inherited static
    method back as a plain function, and all later tests of the module would fail.
    """
    for name, value in vars(driver.LibvirtDriver).items():
        if isinstance(value, staticmethod) and name not in vars(LibvirtDriver):
            setattr(LibvirtDriver, name, value)


def keep_the_base_class() -> None:
    """Have the constructor of Nova's driver name Nova's driver by a second name.

    Nova 31 and 32 call ``super(LibvirtDriver, self).__init__``. When the first name is that of
    our driver, which is a subclass, the constructor would call itself without an end.
    """
    initialize = driver.LibvirtDriver.__init__
    driver.NovasDriver = driver.LibvirtDriver
    names = initialize.__code__.co_names
    own = tuple("NovasDriver" if name == "LibvirtDriver" else name for name in names)
    initialize.__code__ = initialize.__code__.replace(co_names=own)


def hide_unused_shares() -> None:
    """Leave VCPU_SHARES that nobody uses out of the usages that tests read.

    Tests compare usages as a whole, and every host has the class. Without this, hundreds of
    tests would differ for one reason, and a second reason would not be seen.
    """
    read = PlacementApiClient.get

    def get(self: Any, url: str, **kwargs: Any) -> Any:
        response = read(self, url, **kwargs)
        usages = response.body.get("usages", {})
        if usages.get(VCPU_SHARES) == 0:
            del usages[VCPU_SHARES]
        return response

    PlacementApiClient.get = get


def count_wrapped() -> dict[str, int]:
    """Return how many of our wrappers are around functions of Nova, by Nova's module."""
    numbers: Counter[str] = Counter()
    for name, module in list(sys.modules.items()):
        if name.startswith("nova.") and not name.startswith(("nova.virt.cpu_tiers", "nova.tests")):
            numbers[name] = sum(map(layers, functions(module)))
    return dict(+numbers)


def functions(module: Any) -> Iterator[Any]:
    """Yield the functions of a module and of its own classes."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from (getattr(member, "__func__", member) for member in vars(value).values())
        elif getattr(value, "__module__", None) == module.__name__:
            yield value


def layers(function: Any) -> int:
    """Return how many wrappers of cpu-tiers are around a function."""
    number = 0
    while isinstance(function, FunctionType):
        number += function.__globals__.get("__name__", "").startswith("cpu_tiers.")
        function = getattr(function, "__wrapped__", None)
    return number
