"""The moves of a plan as whole numbers by kind of servers, which the HiGHS solver makes least.

Servers of a kind have equal requests and can change places. The program counts the servers of a
kind that leave and enter each place, and does not name the servers. It has thousands of numbers
where a yes or no for every server and host would be millions. HiGHS (highspy) proves the optimum,
or says how far the optimum could be away when the time is over. Pure.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.room.free import Amounts

if TYPE_CHECKING:
    import highspy

_MOST_WAITS = 10
"""So many times the given seconds may pass on a busy machine."""


class Departure(NamedTuple):
    """Servers of a kind with equal amounts, of which some may leave.

    :param kind: a text that is equal for servers of a kind.
    :param host: the uuid of the root provider of the servers' host.
    :param must_leave: whether the plan is to move all these servers.
    """

    kind: str
    host: str
    amounts: Amounts
    must_leave: bool = False


class KindPlace(NamedTuple):
    """A place that servers of a kind can take: an allocation candidate of a host."""

    kind: str
    host: str
    amounts: Amounts


class Problem(NamedTuple):
    """The question of a plan.

    :param free: the free amount of each row; negative where more is allocated than the capacity.
    :param departures: how many servers of each departure can leave.
    :param targets: the places of a new server, for which the plan makes room.
    :param wanted: the number of new servers; ``None`` for as many as possible.
    :param most_moves: ``None`` for any number of moves.
    :param mends: the rows that the plan is to bring back to their capacity.
    """

    free: Mapping[Row, int]
    departures: Mapping[Departure, int]
    arrivals: Sequence[KindPlace]
    targets: Sequence[Amounts] = ()
    wanted: int | None = 0
    most_moves: int | None = None
    mends: frozenset[Row] = frozenset()

    @property
    def undone_cost(self) -> int:
        """The cost of a server that does not leave or has no room, or of an excess that stays.

        The cost is more than the cost of all moves together: each move costs 1.
        """
        movable = sum(self.departures.values())
        return 1 + (movable if self.most_moves is None else min(movable, self.most_moves))

    def proven(self, least_cost: float) -> int | None:
        """Return what a least cost proves: the fewest moves, or the most new servers.

        :returns: ``None`` for nothing.
        """
        if not math.isfinite(least_cost):
            return None
        if self.wanted is None:
            return math.floor((self.undone_cost - 1 - least_cost) / self.undone_cost + 1e-6)
        must = sum(number for each, number in self.departures.items() if each.must_leave)
        return max(0, math.ceil(least_cost + self.undone_cost * must - 1e-6))


class Counts(NamedTuple):
    """How many servers leave and enter, as an answer to a :class:`Problem`.

    :param numbers: the number of servers of each departure, of each arrival and in each target.
    :param bound: what is proven, see :meth:`Problem.proven`.
    """

    numbers: Sequence[int]
    bound: int | None


def solve(problem: Problem, seconds: float, start: Sequence[int] = ()) -> Counts | None:
    """Return the counts with the least cost that HiGHS finds in a time.

    :param start: the numbers to begin with, such as those of a search.
    :returns: ``None`` if HiGHS finds no answer in the time.
    :raises ImportError: the extra ``plan`` is not installed.
    """
    import highspy

    end = time.process_time() + seconds
    highs = highspy.Highs.__new__(highspy.Highs)
    # Without the callbacks of its own constructor, which print a banner to standard output.
    super(highspy.Highs, highs).__init__()
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "time_limit": _MOST_WAITS * seconds,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.99,
        # It solves programs within the program, which ask nobody whether the time is over.
        "mip_heuristic_run_root_reduced_cost": False,
        "random_seed": 1,
    }.items():
        highs.setOptionValue(option, value)
    stop = Event()
    _stop_after(highs, end, stop)
    highs.passModel(_Columns(problem).model())
    if start:
        highs.setSolution(len(start), list(range(len(start))), list(map(float, start)))
    _run(highs, stop)
    info = highs.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    numbers = [round(value) for value in highs.getSolution().col_value]
    return Counts(numbers, problem.proven(info.mip_dual_bound))


def rounded_row(
    factors: Mapping[int, float], free: int, size: float
) -> tuple[dict[int, float], float, float]:
    """Return what a row of amounts says of whole servers, in units of the size of a new server.

    Without this row, half a new server has room in half its size, and the bound is far away. It is
    the inequality of mixed-integer rounding (Nemhauser and Wolsey 1990).
    """
    whole, rest = divmod(free / size, 1)
    rounded = {}
    for column, factor in factors.items():
        full, part = divmod(factor / size, 1)
        if value := full + max(0.0, part - rest) / (1 - rest):
            rounded[column] = value
    return rounded, -math.inf, whole


_LAST_SECONDS = 0.5
"""So long an interrupted command waits for the solver."""


def _run(highs: highspy.Highs, stop: Event) -> None:
    """Run the solver beside the main thread, which alone gets Ctrl-C.

    :param stop: has the solver end soon. A solver that does not end dies with the process.
    """
    solver = Thread(target=highs.run, daemon=True)
    solver.start()
    try:
        while solver.is_alive():
            solver.join(0.1)
    except BaseException:
        stop.set()
        solver.join(_LAST_SECONDS)
        raise


def _stop_after(highs: highspy.Highs, end: float, stop: Event) -> None:
    """Let the solver end at a time of this process's CPU: the machine may be busy."""
    import highspy

    def tell(_type: object, _text: str, _out: object, answer: Any, _data: object) -> None:
        answer.user_interrupt = stop.is_set() or time.process_time() > end

    super(highspy.Highs, highs).setCallback(tell, None)
    for name in ("kCallbackMipInterrupt", "kCallbackSimplexInterrupt", "kCallbackIpmInterrupt"):
        kind = getattr(highspy.cb.HighsCallbackType, name)
        super(highspy.Highs, highs).startCallback(kind)


class _Columns:
    """The columns of the program: departures, arrivals, targets, and the undone part."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._undone = problem, float(problem.undone_cost)
        self._targets_from = len(problem.departures) + len(problem.arrivals)
        self.costs: list[float] = []
        # The highest value of each column: the solver is slow without any.
        self.highest: list[float] = []
        # Of each row of the program: its columns with their factors, its least and its most.
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self._used: dict[Row, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        kinds, movable = defaultdict[str, dict[int, float]](dict), Counter[str]()
        most, wanted = (
            math.inf if number is None else float(number)
            for number in (problem.most_moves, problem.wanted)
        )
        for departure, number in problem.departures.items():
            cost = 1.0 - self._undone if departure.must_leave else 1.0
            column = self._add(cost, min(most, number), departure.amounts, -1)
            kinds[departure.kind][column] = 1.0
            movable[departure.kind] += number
        for arrival in problem.arrivals:
            column = self._add(0.0, min(most, movable[arrival.kind]), arrival.amounts)
            kinds[arrival.kind][column] = -1.0
        cost = -self._undone if problem.wanted is None else 0.0
        targets = [self._add(cost, wanted, amounts) for amounts in problem.targets]
        self._add_resources()
        # As many servers of a kind arrive as leave.
        self.rows += [(columns, 0.0, 0.0) for columns in kinds.values()]
        if problem.most_moves is not None:
            self.rows.append((dict.fromkeys(range(len(problem.departures)), 1.0), -math.inf, most))
        if problem.wanted:
            room = dict.fromkeys([*targets, self._add(self._undone, wanted)], 1.0)
            self.rows.append((room, wanted, math.inf))

    def _add(self, cost: float, highest: float, amounts: Amounts = (), sign: int = 1) -> int:
        """Add a column, and return its number.

        :param amounts: what each server of the column takes; gives back with the sign -1.
        """
        column = len(self.costs)
        self.costs.append(cost)
        self.highest.append(highest)
        for row, amount in amounts:
            self._used[row][column] += sign * amount
        return column

    def _add_resources(self) -> None:
        """Keep each row within its free amount; nothing enters a row that stays over capacity."""
        for row, factors in self._used.items():
            free = self._problem.free.get(row, 0)
            if free >= 0:
                self.rows.append((factors, -math.inf, float(free)))
                if sizes := {n for column, n in factors.items() if column >= self._targets_from}:
                    self.rows.append(rounded_row(factors, free, max(sizes)))
            else:
                self._add_excess(factors, free, is_mended=row in self._problem.mends)

    def _add_excess(self, amounts: dict[int, float], free: int, *, is_mended: bool) -> None:
        """Let a row over its capacity either have no arrivals, or end within the capacity."""
        stays = self._add(self._undone if is_mended else 0.0, 1.0)
        entering = {column: factor for column, factor in amounts.items() if factor > 0}
        leaves = sum(-f * self.highest[c] for c, f in amounts.items() if f < 0)
        self.rows.append(({**amounts, stays: float(free)}, -math.inf, float(free)))
        if entering:
            most = max(0.0, leaves + free)
            self.rows.append(({**entering, stays: most}, -math.inf, most))

    def model(self) -> highspy.HighsLp:
        import highspy

        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.costs), len(self.rows)
        model.col_cost_, model.col_upper_ = self.costs, self.highest
        model.col_lower_ = [0.0] * len(self.costs)
        model.row_lower_ = [least for _, least, _ in self.rows]
        model.row_upper_ = [most for _, _, most in self.rows]
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(self.costs)
        rows = [row for row, _, _ in self.rows]
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = list(accumulate(map(len, rows), initial=0))
        model.a_matrix_.index_ = [column for row in rows for column in row]
        model.a_matrix_.value_ = [factor for row in rows for factor in row.values()]
        return model
