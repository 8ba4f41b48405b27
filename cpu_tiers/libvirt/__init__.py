"""libvirt: read capabilities and domain XML, write domain XML, and query a running libvirt."""
