"""What a host sells, in few words."""

from fractions import Fraction

from cpu_tiers.tools.tiers.sold import Sale


def sale(cpus: int, shares: int) -> Sale:
    """Return the sale of a host of shared CPUs with a capacity of shares."""
    return Sale(cpus=cpus, shares=Fraction(shares))
