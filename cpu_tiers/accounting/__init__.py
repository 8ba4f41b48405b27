"""Who holds what of whom, who lacks what, and where it goes: bookkeeping without any I/O."""
