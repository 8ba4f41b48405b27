"""What a tier gives the guests of a host: pure, from values of flavors, domains and providers."""
