"""The command line, on cliff: the only folder that prints."""
