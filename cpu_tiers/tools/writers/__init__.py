"""The commands with writes to Placement."""
