"""The libvirt of a host, as commands read it: the connection, and the XML of its domains."""
