"""Bookkeeping of allocations, without any I/O: holdings, shortfalls, and where to add amounts."""
