"""The commands that write to Placement."""
