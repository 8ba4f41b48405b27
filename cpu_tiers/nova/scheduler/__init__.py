"""What nova-scheduler loads: the weigher, and the seams that it installs."""
