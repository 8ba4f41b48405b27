"""What the driver overrides of Nova's driver is verified."""

import inspect

from nova.virt.libvirt import driver as novas

from cpu_tiers.nova.compute import driver, overrides


def test_each_method_that_the_driver_overrides_is_verified() -> None:
    own = vars(driver.LibvirtDriver)
    overridden = {
        f"LibvirtDriver.{name}"
        for name, value in own.items()
        if inspect.isfunction(value) and hasattr(novas.LibvirtDriver, name)
    }
    assert len(overridden) == 3
    assert overridden <= {seam.path for seam in overrides.SEAMS}
