"""Allocations that a command corrects: of servers without shares, and of ports."""
