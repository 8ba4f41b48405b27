"""Faults of the cloud: a program is away or killed, or tokens expire or are revoked."""

from dataclasses import dataclass
from typing import NamedTuple

from tests.cloud.rest import IDENTITY, Cloud

API = "curl --silent --max-time 9 --output /dev/null http://controller:{}/"


class Program(NamedTuple):
    """A program of the cloud.

    :param command: a part of its command, which no other program of the supervisor has.
    :param answers: a command that succeeds while the program answers.
    """

    command: str
    answers: str


PROGRAMS = {
    "keystone": Program("keystone.wsgi", API.format(5000)),
    "placement-api": Program("placement.wsgi", API.format(8778)),
    "mariadb": Program("mariadbd", "mariadb-admin --socket=/run/mysqld/mysqld.sock ping"),
    "rabbitmq-server": Program("rabbit", "rabbitmqctl --quiet await_startup"),
    "nova-conductor": Program("nova-conductor", "pgrep -f nova-conductor"),
    "libvirtd": Program("libvirtd", "virsh --connect qemu:///system version"),
}
"""The programs that fail."""


KEYSTONE = "/etc/keystone/keystone.conf"
RESTART = "supervisorctl restart keystone"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault between two moments.

    :param program: the program that is away, or whose user's tokens are revoked.
    :param way: ``stopped`` until the end of the fault; ``killed``, and started again by the
        supervisor; ``revoked``; or ``expiring``: new tokens are valid for 3 seconds.
    """

    program: str
    way: str
    host: str = "compute1"

    def __str__(self) -> str:
        where = "" if self.host == "compute1" else f" on {self.host}"
        return f"{self.program}{where} {self.way}"

    def begin(self, cloud: Cloud) -> None:
        """Have the fault from now on."""
        if self.way == "stopped":
            cloud.on(self.host, f"supervisorctl stop {self.program}")
        elif self.way == "killed":
            command = PROGRAMS[self.program].command
            child = f"pgrep --parent $(</run/supervisord.pid) --full {command}"
            status, output = cloud.on(self.host, f"kill -KILL -- -$({child})")
            assert status == 0, output
        elif self.way == "expiring":
            cloud.on(self.host, f"printf '[token]\\nexpiration = 3\\n' >> {KEYSTONE}; {RESTART}")
        else:  # A new password ends all tokens of the user, also if it is the old password.
            (user,) = cloud.get(IDENTITY, f"/users?name={self.program}")["users"]
            body = {"user": {"password": "secret"}}
            assert cloud.request("PATCH", IDENTITY, f"/users/{user['id']}", body).status == 200

    def end(self, cloud: Cloud) -> None:
        """Have the program answer again, and nova-api, as systemd starts what has ended."""
        if self.way == "revoked":
            return
        if self.way == "expiring":
            cloud.on(self.host, f"sed -i '/^.token/,$d' {KEYSTONE}; {RESTART}")
        start = f"supervisorctl start {self.program}; " if self.way == "stopped" else ""
        answers = PROGRAMS[self.program].answers
        status, output = cloud.on(self.host, f"{start}until {answers}; do sleep 0.3; done")
        assert status == 0, f"{self} for ever:\n{output[-2000:]}"


FAULTS = (
    *(Fault(program=program, way=way) for program in PROGRAMS for way in ("stopped", "killed")),
    *(Fault(program="libvirtd", way=way, host="compute2") for way in ("stopped", "killed")),
    *(Fault(program=user, way="revoked") for user in ("nova", "placement")),
    Fault(program="keystone", way="expiring"),
)
