"""The modules that nova-compute loads: the driver, its launcher, and seams of the driver."""
