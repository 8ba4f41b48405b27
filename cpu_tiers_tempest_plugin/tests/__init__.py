"""The tests that `tempest run` finds."""
