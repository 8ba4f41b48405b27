"""The weigher for nova-scheduler, and the seams that the weigher installs."""
