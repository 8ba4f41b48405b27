"""Self-contained HTML pages with charts: a page needs no network, and no other file."""
