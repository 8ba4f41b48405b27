"""The words that a guest's CPUs and memory are asked for with."""

from typing import Literal

CpuPolicy = Literal["dedicated", "mixed", "shared"]
ThreadPolicy = Literal["prefer", "isolate", "require"]
EmulatorThreadsPolicy = Literal["share", "isolate"]
PageSize = Literal["small", "large", "any"] | int
"""A size in kB; or the smallest of the host, any larger one, or any at all."""
