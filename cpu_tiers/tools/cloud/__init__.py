"""The commands that read a cloud, or predict its answers."""
