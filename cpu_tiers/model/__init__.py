"""The nouns of cpu-tiers: frozen values, no I/O, no configuration."""
