"""What the commands ask of Nova: its hosts, servers and ports, and what these lack."""
