"""Seams by which a resize that changes only the tier is carried out on the running server.

Nova's API has done everything of a resize when it calls the wrapped functions: policy, lock,
state, quota and image are checked, the task state is saved, and the action is on record.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import contextlib
import functools
import time
from collections.abc import Iterable
from typing import Any

from nova import exception, objects
from nova.compute import rpcapi, task_states, vm_states
from nova.scheduler.client import report
from oslo_log import log as logging
from oslo_messaging import MessagingException
from oslo_utils import timeutils

from cpu_tiers import oversold
from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES, parse_shares
from cpu_tiers.in_time import TimeBudget
from cpu_tiers.model.names import TIER_CHANGE_TRAIT, VCPU_SHARES
from cpu_tiers.nova import tier_changes
from cpu_tiers.nova.convert import extra_specs, to_flavor
from cpu_tiers.nova.excesses import excesses_of
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Function, seam
from cpu_tiers.nova.tier_changes import EVENT, NO_EVENT, PENDING, Body

LOG = logging.getLogger(__name__)

TIER = {MULTIPLIER, SHARES, f"resources:{VCPU_SHARES}", "resources:VCPU_SHARES"}
"""The extra specs of a tier."""

_SIZES = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap", "rxtx_factor", "vcpu_weight")

_LONGEST_SECONDS = 30.0
"""So long, a claim that oversells the host is given back and made again."""

_NO_ROOM = "Unable to allocate inventory"
"""Placement's words for a claim beyond the capacity, or of what a provider does not have."""

_LOOK = TimeBudget("look for excess claims", seconds=5.0)


class NoRoomForTier(exception.InstanceNotReady):
    """A server cannot get its new tier where it runs; nova-api answers 409."""

    msg_fmt = "The tier of server %(instance_id)s cannot change while the server runs: %(reason)s"


def differ_only_in_tier(old: objects.Flavor, new: objects.Flavor) -> bool:
    """Tell whether a change of a server from one flavor to another is a change of the tier."""
    rest = [
        {key: value for key, value in extra_specs(each).items() if key not in TIER}
        for each in (old, new)
    ]
    sizes = [[getattr(each, name) for name in _SIZES] for each in (old, new)]
    return old.id != new.id and rest[0] == rest[1] and sizes[0] == sizes[1]


def _change_tier(
    original: Function,
    self: object,
    context: Any,
    instance: objects.Instance,
    scheduler_hint: object,
    flavor: objects.Flavor,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Change the tier of a running server; leave every other resize to Nova.

    :raises NoRoomForTier: the tier cannot change, and the operator chose no power-off.
    :raises nova.exception.InvalidRequest: the new flavor has no valid tier.
    """
    is_running = instance.vm_state == vm_states.ACTIVE
    if not is_running or not differ_only_in_tier(instance.flavor, flavor):
        return original(self, context, instance, scheduler_hint, flavor, *args, **kwargs)
    change = _Change(context, instance, flavor)
    try:
        return change.carry_out()
    except InvalidInput as error:
        change.undo(error)
        raise exception.InvalidRequest(str(error)) from error
    except _Obstacle as obstacle:
        if CONF.compute.live_tier_change == "refuse":
            change.undo(obstacle)
            raise NoRoomForTier(instance_id=instance.uuid, reason=obstacle) from obstacle
        change.leave_to_nova(obstacle)
    except (exception.UnexpectedTaskStateError, exception.InstanceNotFound) as error:
        reason = "the server has changed in the meantime"
        raise NoRoomForTier(instance_id=instance.uuid, reason=reason) from error
    return original(self, context, instance, scheduler_hint, flavor, *args, **kwargs)


class _Obstacle(Exception):
    """The tier of a server cannot change while the server runs. The text says why."""


class _Change:
    """The change of a server to a flavor of another tier."""

    def __init__(self, context: Any, instance: objects.Instance, flavor: objects.Flavor) -> None:
        self._context, self._instance, self._flavor = context, instance, flavor
        self._client = report.report_client_singleton()
        self._grows = self._is_certain = True

    def carry_out(self) -> None:
        """Claim the shares, give the server its new flavor, and have the host set the weight.

        :raises _Obstacle: nothing has changed, but for a claim that the host gives back.
        """
        instance = self._instance
        # From now on, the host makes the allocations equal to the flavor that the server has in
        # the end, however this process ends.
        instance.system_metadata[PENDING] = self._context.request_id
        instance.save(expected_task_state=[task_states.RESIZE_PREP])
        parse_shares(to_flavor(self._flavor))
        try:
            self._claim()
        except NO_ANSWER as error:
            LOG.exception("No shares are claimed: %r", error, instance=instance)
            self._is_certain = False  # Placement may have granted the claim: the host looks
            raise _Obstacle("Placement or Nova's database does not answer") from error
        tier_changes.notify_usage(instance)
        objects.InstanceActionEvent.event_start(
            self._context, instance.uuid, EVENT, want_result=False, host=instance.host
        )
        if self._grows:
            self._save_request()
        migration = self._save_server()
        # Nova confirms the first record with this status, so the server is saved before. If this
        # process ends now, the host of the server does what is left.
        migration.status = "finished"
        migration.save()
        if not self._grows:
            self._save_request()
        tier_changes.notify(instance, "resize", "resize_finish")
        _ring(self._context, instance)

    def _claim(self) -> None:
        """Claim the shares that the server lacks for its new tier."""
        context, instance = self._context, self._instance
        root = tier_changes.root_of(instance)
        if TIER_CHANGE_TRAIT not in self._client.get_provider_traits(context, root).traits:
            raise _Obstacle(f"its host does not have the trait {TIER_CHANGE_TRAIT}")
        held = self._held()
        shares = tier_changes.shares_on(self._client, root, held, instance, self._flavor)
        lacking = sum(shares.values()) - tier_changes.amount(held, shares)
        self._grows = lacking >= 0
        if lacking <= 0:
            return  # the host gives the difference back
        deadline = time.monotonic() + _LONGEST_SECONDS
        while True:
            wanted = tier_changes.with_amounts(held, shares)["allocations"]
            if refusal := self._write(held, wanted):
                break
            if not self._is_oversold(shares):
                return
            self._give_back(held["allocations"], wanted)
            if time.monotonic() > deadline:
                raise _Obstacle("many servers claim shares of its host; try again later")
            # All claims of an excess may have been given back: the last to claim again finds room.
            oversold.pause()
            held = self._held()
        LOG.info("Placement refuses %d shares: %s", lacking, refusal, instance=instance)
        if _NO_ROOM in refusal:
            raise _Obstacle(f"its host has no room for {lacking} more {VCPU_SHARES}")
        raise _Obstacle("others change its host or its allocations; try again later")

    def _held(self) -> Body:
        """Return the allocations of the server, without the generations of providers."""
        held = self._client.get_allocs_for_consumer(self._context, self._instance.uuid)
        amounts = {uuid: each["resources"] for uuid, each in held["allocations"].items()}
        return {**held, "allocations": {uuid: {"resources": n} for uuid, n in amounts.items()}}

    def _write(self, held: Body, allocations: Any) -> str:
        body = {**held, "allocations": allocations}
        return tier_changes.write(self._client, self._context, {self._instance.uuid: body})

    def _give_back(self, before: Any, after: Any) -> None:
        """Write the allocations of before a claim.

        :raises _Obstacle: they may not be written; the host gives the claim back.
        """
        held: Body = {}

        def read() -> Any:
            held.update(self._held())
            return held["allocations"]

        def write() -> str:
            return self._write(held, before)

        if fault := oversold.give_back(before, after, read, write, NO_ANSWER):
            LOG.error("The claim may not be given back: %s", fault, instance=self._instance)
            self._is_certain = False
            raise _Obstacle("Placement has allocated more than there is")

    def _is_oversold(self, shares: Iterable[str]) -> bool:
        """Tell whether more is allocated than there is (decision D89), if the guard is on."""
        if not CONF[filter_scheduler.GROUP].give_back_oversold_claims:
            return False
        claimed = dict.fromkeys(shares, (VCPU_SHARES,))
        look = functools.partial(excesses_of, self._client, self._context, claimed)
        return bool(_LOOK.do(lambda: oversold.lasting_excesses(look)))

    def _save_request(self) -> None:
        # The request spec of the API has further changes, which Nova does not save, either.
        spec = objects.RequestSpec.get_by_instance_uuid(self._context, self._instance.uuid)
        spec.flavor = self._flavor
        spec.save()

    def _save_server(self) -> objects.Migration:
        """Save the server as resized; return its migration record, which is not finished yet."""
        instance, old, new = self._instance, self._instance.flavor, self._flavor
        migration = objects.Migration(
            self._context.elevated(),
            instance_uuid=instance.uuid,
            migration_type="resize",
            status="accepted",
            source_compute=instance.host,
            source_node=instance.node,
            dest_compute=instance.host,
            old_instance_type_id=old.id,
            new_instance_type_id=new.id,
        )
        migration.create()
        # Without devices, memory and pinned CPUs: at a confirm, Nova frees those of before, which
        # the guest still has.
        instance.migration_context = objects.MigrationContext(
            self._context,
            instance_uuid=instance.uuid,
            migration_id=migration.id,
            **{n: None for n in objects.MigrationContext.fields if n.startswith(("old_", "new_"))},
        )
        instance.old_flavor, instance.new_flavor = old, new
        instance.flavor, instance.instance_type_id = new, new.id
        instance.system_metadata["old_vm_state"] = instance.vm_state
        instance.vm_state, instance.task_state = vm_states.RESIZED, None
        instance.save(expected_task_state=[task_states.RESIZE_PREP])
        return migration

    def undo(self, reason: Exception) -> None:
        """Make the server as before its resize, and note the reason for the user."""
        self._instance.task_state = None
        self._end("Error", str(reason))

    def leave_to_nova(self, reason: Exception) -> None:
        """Note for the user why Nova resizes the server, which powers the server off."""
        self._end("Success", f"Nova resizes the server: {reason}")

    def _end(self, result: str, details: str) -> None:
        instance, now = self._instance, timeutils.utcnow()
        if self._is_certain:
            del instance.system_metadata[PENDING]
        note = objects.InstanceActionEvent(
            self._context, event=NO_EVENT, result=result, details=details[:255], host=instance.host
        )
        note.start_time = note.finish_time = now
        with contextlib.suppress(exception.NovaException):  # the server is being deleted
            instance.save(expected_task_state=[task_states.RESIZE_PREP])
            note.create(instance.uuid, self._context.request_id)


def _ring(context: Any, instance: objects.Instance) -> None:
    """Have the host of a server carry out a pending change now, and not with its next report."""
    try:
        rpcapi.ComputeAPI().inject_network_info(context, instance)
    except MessagingException as error:
        LOG.warning(
            "The host of the server does not hear of its tier: %r", error, instance=instance
        )


def _revert(
    original: Function,
    self: object,
    ctxt: Any,
    instance: objects.Instance,
    migration: objects.Migration,
    host: str,
    request_spec: objects.RequestSpec,
) -> Any:
    """Have the host give a running server its former tier back."""
    if not tier_changes.is_live(migration):
        return original(self, ctxt, instance, migration, host, request_spec)
    objects.InstanceActionEvent.event_start(
        ctxt, instance.uuid, EVENT, want_result=False, host=instance.host
    )
    instance.system_metadata[PENDING] = ctxt.request_id
    instance.save(expected_task_state=[task_states.RESIZE_REVERTING])
    return _ring(ctxt, instance)


SEAMS = (
    seam(
        "nova.conductor.api:ComputeTaskAPI.resize_instance",
        "self, context, instance, scheduler_hint, flavor, reservations=None, clean_shutdown=True,"
        " request_spec=None, host_list=None, do_cast=False",
        _change_tier,
    ),
    seam(
        "nova.compute.rpcapi:ComputeAPI.revert_resize",
        "self, ctxt, instance, migration, host, request_spec",
        _revert,
    ),
    seam("nova.compute.rpcapi:ComputeAPI.inject_network_info", "self, ctxt, instance"),
    seam(
        "nova.scheduler.client.report:SchedulerReportClient.get_provider_traits",
        "self, context, rp_uuid",
    ),
    *tier_changes.SEAMS,
)
