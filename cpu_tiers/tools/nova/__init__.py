"""For commands with access to Nova: compute nodes, servers, ports and their shortfalls."""
