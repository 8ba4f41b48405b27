"""Validators of extra specs for nova-api, and the seams that loading the validators installs."""
