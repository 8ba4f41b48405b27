"""The commands that read a cloud, or predict what it does."""
