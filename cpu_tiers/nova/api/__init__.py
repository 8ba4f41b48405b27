"""What nova-api loads: validators of extra specs, and the seams that they install."""
