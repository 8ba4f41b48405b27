"""libvirt's side: capabilities XML in, domain XML elements out."""
