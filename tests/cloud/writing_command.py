"""Commands of cpu-tiers that write to Placement, while a fault begins and ends."""

from dataclasses import dataclass

from tests.cloud.rest import Cloud

FILES = "/run/command"


@dataclass(frozen=True, kw_only=True)
class WritingCommand:
    """A command of cpu-tiers with its arguments."""

    arguments: str

    def __str__(self) -> str:
        return " ".join(self.arguments.split()[:2])

    def start(self, cloud: Cloud) -> None:
        """Start the command."""
        command = f"timeout 100 cpu-tiers {self.arguments} >{FILES}.out 2>&1"
        cloud.shell.run(f"rm -f {FILES}.*; ({command}; echo $? >{FILES}.status) &")

    def end(self, cloud: Cloud) -> tuple[int, str]:
        """Wait for the end of the command; return its exit status and its last line."""
        wait = f"until [ -s {FILES}.status ]; do sleep 0.2; done"
        status, output = cloud.on(
            "compute1", f"{wait}; tail -n 1 {FILES}.out; exit $(<{FILES}.status)", seconds=120
        )
        return status, output

    def run(self, cloud: Cloud) -> tuple[int, str]:
        """Run the command to its end; return its exit status and its last line."""
        self.start(cloud)
        return self.end(cloud)


HEAL = WritingCommand(arguments="allocation heal --apply --skip-ports")
SYNC = WritingCommand(
    arguments="inventory sync --connect qemu:///system --hostname spare --disk-gb 10"
)
