"""The values of all packages: frozen, without I/O or configuration."""
