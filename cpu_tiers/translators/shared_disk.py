"""A group of its own for the disk, where no other resource stays in the unsuffixed group.

Hosts may have their disk from a pool that they share: a provider with the trait
``MISC_SHARES_VIA_AGGREGATE``. If sharing providers alone can serve the unsuffixed group, Placement
13 to 16 make the same candidate of it for each host and keep the candidate of one host or of none
(``docs/upstream/shared-disk.rst``). A group with a suffix is free of the fault.
"""

from cpu_tiers.model.names import DISK_GB
from cpu_tiers.model.request import RequestGroup

DISK = "_DISK"
"""The suffix of the group that requests the disk."""


def with_disk_apart(group: RequestGroup) -> RequestGroup:
    """Return the group, with the suffix ``_DISK`` if it is unsuffixed and requests only a disk.

    Without its forced host and aggregates: they are those of the server's host, and a pool is in
    the tree of no host. A group with traits stays as it is.
    """
    if group.suffix or group.resources.keys() != {DISK_GB} or group.has_traits:
        return group
    return RequestGroup(DISK, group.resources, requester_id=group.requester_id)
