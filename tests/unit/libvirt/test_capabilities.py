from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages


def parse(text: str) -> HostTopology:
    return parse_capabilities(text.encode(), where="caps.xml")


def test_cells(capabilities: str) -> None:
    topology = parse(capabilities)
    assert topology == HostTopology(
        arch="x86_64",
        cells=(
            NumaCell(
                id=0,
                cpus=CpuSet({0, 1, 4, 5}),
                memory_kb=8388608,
                cores=(CpuSet({0, 4}), CpuSet({1, 5})),
                pages=(Pages(size_kb=4, total=2097152),),
                socket=0,
            ),
            NumaCell(
                id=1,
                cpus=CpuSet({2, 3, 6, 7}),
                memory_kb=4194816,
                cores=(CpuSet({2, 6}), CpuSet({3, 7})),
                socket=1,
            ),
        ),
    )
    assert topology.cpus == CpuSet(range(8))
    assert topology.memory_mb == 12288  # 8192 + 4096.5, rounded down


def test_a_cell_without_memory_and_a_cell_without_cpus() -> None:
    topology = parse(
        "<capabilities><host><topology><cells>"
        "<cell id='0'><cpus><cpu id='0'/></cpus></cell>"
        "<cell id='1'><memory unit='KiB'>1024</memory><cpus num='0'/></cell>"
        "</cells></topology></host></capabilities>"
    )
    assert [(len(cell.cpus), cell.memory_kb) for cell in topology.cells] == [(1, 0), (0, 1024)]


def one_cell(inside: str) -> NumaCell:
    (cell,) = parse(
        "<capabilities><host><topology><cells>"
        f"<cell id='0'><memory>1</memory>{inside}</cell>"
        "</cells></topology></host></capabilities>"
    ).cells
    return cell


@pytest.mark.parametrize(
    ("cpus", "cores"),
    [
        pytest.param("<cpu id='0'/><cpu id='1'/>", [], id="not told: none"),
        pytest.param(
            "<cpu id='0' siblings='0-1'/><cpu id='1' siblings='0,1'/><cpu id='2' siblings='2'/>",
            ["0-1", "2"],
            id="hybrid: two threads, and one",
        ),
        pytest.param(
            "<cpu id='0' siblings='0,9'/>", ["0"], id="a sibling that is offline is left out"
        ),
        pytest.param(
            "".join(f"<cpu id='{cpu}' siblings='0-65535'/>" for cpu in range(1750)),
            ["0-1749"],
            id="60 kB that took 5 s",
        ),
    ],
)
def test_cores(cpus: str, cores: list[str]) -> None:
    assert [str(core) for core in one_cell(f"<cpus>{cpus}</cpus>").cores] == cores


def test_cpus_of_two_sockets_in_a_cell() -> None:
    cpus = "<cpus><cpu id='0' socket_id='0'/><cpu id='1' socket_id='1'/></cpus>"
    assert one_cell(cpus).socket is None


def test_page_sizes() -> None:
    pages = "<pages unit='KiB' size='2048'>0</pages><pages unit='KiB' size='4'>9</pages>"
    assert one_cell(f"<cpus><cpu id='0'/></cpus>{pages}").pages == (
        Pages(size_kb=2048, total=0),
        Pages(size_kb=4, total=9),
    )


def test_comments_and_a_blank_arch(capabilities: str) -> None:
    text = capabilities.replace("8388608", "838<!-- x -->8608").replace(">x86_64<", "> <")
    assert parse(text) == parse(capabilities)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        pytest.param("", "not XML", id="empty"),
        pytest.param("{}", "not XML", id="JSON"),
        pytest.param("<capabilities>", "not XML", id="cut off"),
        pytest.param(
            "<domain/>", "a document with the root element 'domain'", id="another document"
        ),
        pytest.param("<capabilities/>", "no <host>", id="no host"),
        pytest.param(
            "<capabilities><host><topology><cells/></topology></host></capabilities>",
            "no <host>",
            id="no cells",
        ),
    ],
)
def test_documents_without_a_topology(text: str, given: str) -> None:
    with pytest.raises(InvalidInput, match=f"^caps.xml: {given}"):
        parse(text)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("<cell id='0'>", "<cell id='x'>", "caps.xml, line 7, cell id"),
        ("<cell id='0'>", "<cell>", "caps.xml, line 7, cell id"),
        (">8388608<", ">lots<", "caps.xml, NUMA cell 0, memory"),
        (">8388608<", ">-1<", "caps.xml, NUMA cell 0, memory"),
        ("unit='KiB'>8388608", "unit='bytes'>8388608", "caps.xml, NUMA cell 0, memory"),
        ("unit='KiB' size='4'", "unit='MiB' size='4'", "caps.xml, NUMA cell 0, pages"),
        ("unit='KiB' size='4'", "size='big'", "caps.xml, NUMA cell 0, page size"),
        ("size='4'", "size='0'", "caps.xml, NUMA cell 0"),
        (">2097152<", "><", "caps.xml, NUMA cell 0, pages of 4 kB"),
        (
            "<cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0,4'/>",
            "<cpu id='0' siblings='0-'/>",
            "caps.xml, NUMA cell 0, CPU 0, siblings",
        ),
        ("siblings='0,4'", "siblings='0,1,4'", "caps.xml, NUMA cell 0"),
        ("socket_id='0'", "socket_id=''", "caps.xml, NUMA cell 0, socket_id"),
        ("<cpu id='0'", "<cpu id='-1'", "caps.xml, NUMA cell 0, cpu id"),
        ("<cpu id='0'", "<cpu id='99999999'", "caps.xml, NUMA cell 0"),
        ("<cpu id='0'", "<cpu id='1'", "caps.xml, NUMA cell 0"),
        ("<cpu id='0'", "<cpu id='7'", "caps.xml"),
        ("<cell id='1'>", "<cell id='0'>", "caps.xml"),
    ],
)
def test_faults(capabilities: str, old: str, new: str, where: str) -> None:
    assert old in capabilities
    with pytest.raises(InvalidInput) as caught:
        parse(capabilities.replace(old, new))
    assert [fault.where for fault in caught.value.faults] == [where]


def test_a_host_without_cpus() -> None:
    cells = "<cell id='0'><memory>1024</memory></cell>"
    with pytest.raises(InvalidInput, match="a host without CPUs"):
        parse(
            f"<capabilities><host><topology><cells>{cells}</cells></topology></host></capabilities>"
        )


def bomb() -> str:
    entities = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 1000}">' for n in range(12)
    )
    return f"<!DOCTYPE capabilities [{entities}]><capabilities>&e11;</capabilities>"


def test_an_entity_bomb_does_not_go_off() -> None:
    with pytest.raises(InvalidInput, match=r"DOCTYPE|entity|Entity"):
        parse(bomb())


def test_an_entity_bomb_in_an_attribute_does_not_go_off() -> None:
    with pytest.raises(InvalidInput, match=r"DOCTYPE|entity|Entity|amplification"):
        parse(bomb().replace("<capabilities>&e11;", "<capabilities a='&e11;'>"))


def test_an_external_entity_is_not_read(tmp_path: Path, capabilities: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("8388608")
    entity = f'<!DOCTYPE capabilities [<!ENTITY s SYSTEM "{secret.as_uri()}">]>'
    with pytest.raises(InvalidInput, match="a document type"):
        parse(entity + capabilities.replace("8388608", "&s;"))


def test_an_external_document_type_is_not_loaded(tmp_path: Path, capabilities: str) -> None:
    missing = (tmp_path / "no.dtd").as_uri()
    with pytest.raises(InvalidInput, match="a document type"):
        parse(f'<!DOCTYPE capabilities SYSTEM "{missing}">{capabilities}')
