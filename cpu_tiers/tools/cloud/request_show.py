"""``cpu-tiers request show``: the Placement query for a server."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from cpu_tiers import extensions
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.notes_on_answers import tell_left_out
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_source_arguments
from cpu_tiers.tools.frame.server_request import (
    add_request_arguments,
    as_in_spec,
    read_source,
    scheduler_options,
)
from cpu_tiers.tools.room.server_queries import left_out, with_devices
from cpu_tiers.translators import fallback, translate
from cpu_tiers.translators.numa import cheaper

_FORMS: Mapping[str, Callable[[CandidateQuery], CandidateQuery]] = {
    "spec": lambda query: query,
    "fast": cheaper,
}


class RequestShow(NovaConfCommand, ShowCommand):
    """Show the Placement query for a server of a flavor."""

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_source_arguments(parser)
        add_request_arguments(parser, is_of_spec=True)
        parser.add_argument(
            "--form",
            choices=sorted(_FORMS),
            default="spec",
            help="form of queries for NUMA nodes: spec, as the spec has it, or fast, an"
            " equivalent query that takes Placement less time (default: spec)",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        conf = self.nova_conf()
        cloud = self.cloud_source(parsed_args, conf)
        self.find_tiers(conf, cloud)
        server = as_in_spec(parsed_args, conf, read_source(parsed_args, conf, cloud))
        translators = extensions.load(extensions.TRANSLATORS)
        form = _FORMS[parsed_args.form]
        options = scheduler_options(conf)
        query = form(with_devices(translate(server, translators), server, options))
        fallback_query = fallback(server, translators)
        if fallback_query:
            fallback_query = with_devices(fallback_query, server, options)
        tell_left_out(server.flavor, left_out(server.flavor, options))
        keys = ("query", "fallback_query", "groups", "root_required")
        return (*keys, "same_subtree", "group_policy"), (
            query.to_query_string(),
            form(fallback_query).to_query_string() if fallback_query else None,
            FormattedValue([_group(group) for group in query.groups], _lines),
            [*sorted(query.root_required), *(f"!{t}" for t in sorted(query.root_forbidden))],
            [list(suffixes) for suffixes in query.same_subtree],
            query.group_policy,
        )


def _group(group: RequestGroup) -> dict[str, Any]:
    any_of = (f"in:{','.join(traits)}" for traits in sorted(map(sorted, group.any_of)))
    return {
        "suffix": group.suffix,
        "resources": dict(group.resources),
        "required": [*sorted(group.required), *any_of],
        "forbidden": sorted(group.forbidden),
    }


def _lines(groups: list[Mapping[str, Any]]) -> str:
    lines = []
    for group in groups:
        lines.append(f"group {group['suffix']}:" if group["suffix"] else "unsuffixed group:")
        lines += [f"  {name} {amount}" for name, amount in group["resources"].items()]
        lines += [f"  requires {name}" for name in group["required"]]
        lines += [f"  forbids {name}" for name in group["forbidden"]]
    return "\n".join(lines)
