"""Plans of migrations as audits of OpenStack Watcher, which carries the action plans out.

The decision engine of Watcher loads the strategy, the goal and the planner by their entry points.
The strategy runs ``cpu-tiers plan`` as a process of its own, because a solver would stop all other
work of the decision engine, and takes its moves as actions of the kind ``migrate``. The planner
keeps the order of the moves.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import networkx
from oslo_config import cfg
from watcher.decision_engine.goal import base as goals
from watcher.decision_engine.goal.efficacy import specs
from watcher.decision_engine.planner.weight import WeightPlanner
from watcher.decision_engine.strategy.strategies import base as strategies

from cpu_tiers.tools.plan.copying import SETTLING

NAME = "cpu_tiers_plan"
_TEXT = "cpu-tiers plan"
_PROGRAM = "import sys; from cpu_tiers.tools.frame.app import main; sys.exit(main())"
_NAME = {"type": "string", "pattern": "^[^-]"}
_FLAVOR = {"type": "string", "pattern": r"^[^-./][^/]*$", "not": {"pattern": r"\.json$"}}
"""No path: whoever may start an audit must not have the decision engine read its files."""
_ANSWERED = (0, 3)


class PlanFailed(Exception):
    """``cpu-tiers plan`` gave no answer; the text is its own."""


class _Named:
    """The names that a goal and a strategy have in Watcher."""

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the entry point."""
        return NAME

    @classmethod
    def get_display_name(cls) -> str:
        """Return the name for people."""
        return _TEXT

    get_translatable_display_name = get_display_name


class PlanGoal(_Named, goals.Goal):
    """The goal of a plan: room, an empty host, a mended host, or hosts of which one may fail."""

    @classmethod
    def get_efficacy_specification(cls) -> Any:
        """Return no indicators: the verdict of the plan is in the log."""
        return specs.Unclassified()


class PlanStrategy(_Named, strategies.BaseStrategy):
    """Asks ``cpu-tiers plan``, and takes the moves of the answer as actions.

    *Requirements*: the cpu-tiers package in the Python of the decision engine, and a file with the
    section ``[placement]``, whose credentials also hold for Nova. *Limitations*: the audit scope
    of Watcher is not looked at.

    :ivar after: for each action, the numbers of the actions, from 1, that must be done before.
    """

    def __init__(self, config: Any, osc: Any = None) -> None:
        super().__init__(config, osc)
        self._planner = NAME
        self.after: list[Sequence[int]] = []

    @classmethod
    def get_goal_name(cls) -> str:
        """Return the name of the goal."""
        return NAME

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        """Return the parameters of an audit; no text can be taken for an option."""
        number = {"type": "integer", "minimum": 1}
        return {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {
                "question": {"enum": ["room", "drain", "relieve", "survive"]},
                "flavor": _FLAVOR,
                "hosts": {"type": "array", "items": _NAME},
                "count": number,
                "moves": number,
                "keep": number,
                "zone": _NAME,
                "cold": {"type": "boolean"},
            },
            "required": ["question"],
            "additionalProperties": False,
        }

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        """Return the options of ``[watcher_strategies.cpu_tiers_plan]`` in watcher.conf."""
        return [
            cfg.ListOpt(
                "config_files",
                default=["/etc/nova/nova.conf"],
                help="Files with the options of nova-scheduler and the section [placement].",
            ),
            cfg.ListOpt(
                "arguments",
                default=[],
                help="Further arguments of cpu-tiers plan, such as --seconds,20.",
            ),
            cfg.IntOpt(
                "timeout", default=600, min=1, help="The longest time of a plan, in seconds."
            ),
        ]

    def pre_execute(self) -> None:
        """Do nothing before and after: the plan does not use the models of Watcher."""

    post_execute = pre_execute

    def do_execute(self, audit: Any = None) -> None:
        """Add an action for each move, and one that waits before a move that has to settle.

        :raises PlanFailed: there is no answer.
        """
        answer = self._answer(arguments_of(self.input_parameters))
        numbers = list[int]()
        for move in answer["moves"]:
            after: Sequence[int] = [numbers[number - 1] for number in move["after"]]
            if move["settles"]:
                after = [self._add("sleep", after, duration=SETTLING)]
            named = {"destination_node": move["host"]} if move["named"] else {}
            numbers.append(
                self._add(
                    self.MIGRATION,
                    after,
                    move["server"],
                    migration_type="live" if move["live"] else "cold",
                    source_node=move["source"],
                    resource_name=move["name"],
                    **named,
                )
            )

    def _add(
        self, kind: str, after: Sequence[int], server: str | None = None, **parameters: object
    ) -> int:
        """Add an action, and return its number, from 1."""
        self.solution.add_action(action_type=kind, resource_id=server, input_parameters=parameters)
        self.after.append(after)
        return len(self.after)

    def _answer(self, arguments: Sequence[str]) -> Mapping[str, Any]:
        files = [f"--config-file={path}" for path in self.config.config_files]
        more = ["-f", "json", *self.config.arguments]
        # The program is this Python, and no argument can be taken for an option.
        try:
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-c", _PROGRAM, *files, "plan", *arguments, *more],
                capture_output=True,
                text=True,
                check=False,
                timeout=self.config.timeout,
                cwd="/proc/self/fdinfo",  # which has no file with the name of a flavor
            )
        except subprocess.TimeoutExpired as error:
            raise PlanFailed(
                f"no answer within {self.config.timeout} seconds; raise timeout in"
                f" [watcher_strategies.{NAME}] of watcher.conf"
            ) from error
        if done.returncode not in _ANSWERED:
            raise PlanFailed(done.stderr.strip()[-2000:])
        answer: Mapping[str, Any] = json.loads(done.stdout)
        strategies.LOG.info("cpu-tiers plan %s: %s", " ".join(arguments), answer["verdict"])
        return answer


def arguments_of(parameters: Mapping[str, Any]) -> list[str]:
    """Return the arguments of ``cpu-tiers plan`` for the parameters of an audit."""
    options = {name: parameters.get(name) for name in ("count", "moves", "keep", "zone")}
    return [
        parameters["question"],
        *([parameters["flavor"]] if parameters.get("flavor") else []),
        *parameters.get("hosts", ()),
        *(f"--{name}={value}" for name, value in options.items() if value),
        *(["--cold"] if parameters.get("cold") else []),
    ]


class PlanPlanner(WeightPlanner):
    """Lets each migration wait for the migrations that must be done before."""

    _after: Sequence[Sequence[int]] = ()
    _kinds: Sequence[str] = ()

    def schedule(self, context: Any, audit_id: int, solution: Any) -> Any:
        """Write the action plan of a solution of :class:`PlanStrategy`."""
        self._after = solution.strategy.after
        self._kinds = [action["action_type"] for action in solution.actions]
        return super().schedule(context, audit_id, solution)

    def compute_action_graph(self, sorted_weighted_actions: Any) -> Any:
        """Return the actions, each below the actions that it waits for.

        :param sorted_weighted_actions: the actions of each kind, in the order of the plan.
        """
        graph = networkx.DiGraph()
        of_kind = {actions[0].action_type: iter(actions) for _, actions in sorted_weighted_actions}
        actions = [next(of_kind[kind]) for kind in self._kinds]
        graph.add_nodes_from(actions)
        for action, after in zip(actions, self._after, strict=True):
            for number in after:
                graph.add_edge(actions[number - 1], action)
                action.parents.append(actions[number - 1].uuid)
        return graph
