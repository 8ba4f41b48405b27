"""The bounds of XML documents, and the CPU sets that a document repeats."""

import pytest

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.libvirt.document import MAX_BYTES, CpuSetReader, read_root, whole_number
from cpu_tiers.model.cpu_set import CpuSet


def read(text: bytes) -> str:
    return str(read_root(text, tag="domain", where="a.xml", allowed="give a domain").tag)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(b"", "not XML", id="empty"),
        pytest.param(b"<domain>", "not XML", id="no end"),
        pytest.param(b"<a>" * 5000 + b"</a>" * 5000, "not XML", id="deep"),
        pytest.param(b"<capabilities/>", "the root element 'capabilities'", id="another root"),
        pytest.param(b"<!DOCTYPE domain><domain/>", "a document type", id="a document type"),
        pytest.param(
            b"<domain/>" + b" " * (MAX_BYTES - 8),
            f"a document of {MAX_BYTES + 1} bytes; libvirt writes at most {MAX_BYTES} bytes",
            id="a byte too long",
        ),
    ],
)
def test_refused(text: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=f"^a.xml: .*{fault}"):
        read(text)


def test_the_longest_document() -> None:
    assert read(b"<domain/>" + b" " * (MAX_BYTES - 9)) == "domain"


def test_a_cpu_set_is_read_once() -> None:
    faults = FaultList()
    reader = CpuSetReader(faults)
    first = reader.read("0-3", "CPU 0")
    assert first == CpuSet(range(4))
    assert reader.read("0-3", "CPU 1") is first
    assert reader.read("3-", "CPU 2") is reader.read("3-", "CPU 3") is None
    assert [fault.where for fault in faults.faults] == ["CPU 2"]


def test_many_large_cpu_sets_are_a_fault() -> None:
    # 8 times all 65536 CPUs are allowed; each of these texts has 65536 CPUs and 7 to 11 characters
    faults = FaultList()
    reader = CpuSetReader(faults)
    sets = [reader.read("0-65535" + "," * n, f"CPU {n}") for n in range(1000)]
    assert [cpus is not None for cpus in sets[:9]] == [True] * 8 + [False]
    assert [fault.where for fault in faults.faults] == ["CPU 7"]


@pytest.mark.parametrize("text", [None, "", "-1", "1.5", "9" * 16, "²", "1_0"])
def test_no_whole_number(text: str | None) -> None:
    faults = FaultList()
    assert whole_number(text, "memory", faults) == 0
    assert [fault.where for fault in faults.faults] == ["memory"]
