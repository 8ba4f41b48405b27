"""Nova over HTTP: the flavors of the cloud. Needs no Nova in the same Python."""
