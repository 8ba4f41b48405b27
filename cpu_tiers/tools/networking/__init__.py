"""The agents of Neutron, and the providers of their devices: pure."""
