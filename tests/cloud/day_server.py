"""A server of a day, and the operation that goes on."""

import math
from typing import NamedTuple

from tests.cloud.moving_server import GONE


class Going(NamedTuple):
    """An operation that goes on.

    :param host: of the server before the operation.
    :param ask_at: when a removal is requested again.
    :param rests_at: since when the server rests, although the operation is not done.
    """

    name: str
    number: int
    begin: float
    host: str
    ask_at: float = 0.0
    rests_at: float = math.inf


class DayServer:
    """A server of the day.

    :ivar flavor: the name in Nova's database.
    :ivar flavors: of which it may hold room: those before and after a resize, until its end.
    """

    def __init__(self, name: str, flavor: str, port: str, uuid: str) -> None:
        self.name, self.flavor, self.port, self.uuid = name, flavor, port, uuid
        self.flavors = {flavor}
        self.state = GONE
        self.going: Going | None = None
