"""The databases of Placement and Nova, read in place of their APIs; nothing here can write."""
