"""Read the cgroups and the threads of guests from /proc and /sys; nothing is written."""
