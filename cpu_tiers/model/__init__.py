"""The values that all other packages work with: frozen, without I/O or configuration."""
