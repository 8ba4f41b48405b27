"""What nova-compute loads: the driver, its launcher, and the seams that the driver installs."""
