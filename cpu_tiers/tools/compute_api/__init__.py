"""The APIs of Nova, Glance and Neutron over HTTP. Needs no Nova in the same Python."""
