"""Plans of live migrations: ``cpu-tiers plan``."""
