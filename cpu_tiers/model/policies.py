"""The values of the policies for a guest's CPUs and memory, as Nova's keys have them."""

from typing import Literal

CpuPolicy = Literal["dedicated", "mixed", "shared"]
ThreadPolicy = Literal["prefer", "isolate", "require"]
EmulatorThreadsPolicy = Literal["share", "isolate"]
PageSize = Literal["small", "large", "any"] | int
"""A size in kB, the smallest size of the host, any larger size, or any size."""
