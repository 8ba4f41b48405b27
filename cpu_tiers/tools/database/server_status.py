"""The status of a server in Nova's API, by the states that Nova stores. Pure.

Source: Nova, ``nova/api/openstack/common.py`` (``status_from_state``), equal in Nova 31 to 34.
"""

from collections.abc import Mapping

_STATUSES: Mapping[str | None, str] = {
    "active": "ACTIVE",
    "building": "BUILD",
    "stopped": "SHUTOFF",
    "resized": "VERIFY_RESIZE",
    "paused": "PAUSED",
    "suspended": "SUSPENDED",
    "rescued": "RESCUE",
    "error": "ERROR",
    "deleted": "DELETED",
    "soft-delete": "SOFT_DELETED",
    "shelved": "SHELVED",
    "shelved_offloaded": "SHELVED_OFFLOADED",
}
"""The status of a server without a task, or with a task that does not show."""


def _tasks(states: str, status: str, tasks: str) -> dict[tuple[str | None, str | None], str]:
    return {(state, task): status for state in states.split() for task in tasks.split()}


_REBUILDING = "rebuilding rebuild_block_device_mapping rebuild_spawning"
_RESIZING = "resize_prep resize_migrating resize_migrated resize_finish"
_OF_TASKS: Mapping[tuple[str | None, str | None], str] = {
    **_tasks("active", "REBOOT", "rebooting reboot_pending reboot_started"),
    **_tasks("active", "HARD_REBOOT", "rebooting_hard reboot_pending_hard reboot_started_hard"),
    **_tasks("active", "PASSWORD", "updating_password"),
    **_tasks("active stopped error", "REBUILD", _REBUILDING),
    **_tasks("active stopped", "RESIZE", _RESIZING),
    **_tasks("active paused", "MIGRATING", "migrating"),
    **_tasks("resized", "REVERT_RESIZE", "resize_reverting"),
}
"""The status that shows a task, by the state and the task."""


def server_status(state: str | None, task: str | None) -> str:
    """Return the status of a server, such as ``ACTIVE``; ``UNKNOWN`` for another state.

    :param state, task: ``vm_state`` and ``task_state`` of Nova's table ``instances``.
    """
    return _OF_TASKS.get((state, task)) or _STATUSES.get(state, "UNKNOWN")
