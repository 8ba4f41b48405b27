"""Write the XML of a domain with all plugins; read CPUs, weight and flavor of a guest from XML.

The written XML is valid against the schema of libvirt. Source: ``virsh dumpxml``,
https://libvirt.org/formatdomain.html#cpu-allocation and #cpu-tuning, and the metadata that the
libvirt driver of Nova adds.
"""

from collections.abc import Iterable, Mapping

from lxml import etree
from lxml.builder import E
from lxml.etree import QName, _Element

from cpu_tiers.errors import FaultList
from cpu_tiers.libvirt import cputune, memory
from cpu_tiers.libvirt.contract import DomainElements, Guest
from cpu_tiers.libvirt.document import CpuSetReader, read_root, whole_number
from cpu_tiers.libvirt.merging import merge
from cpu_tiers.model.cpu_set import MAX_CPU, CpuSet
from cpu_tiers.tools.tiers.domain import Domain

BUILT_IN: Mapping[str, DomainElements] = {
    "cputune": cputune.elements,
    "memory": memory.elements,
    "numa": memory.numa_elements,
}
"""The plugins of cpu-tiers, by the names of their entry points in pyproject.toml."""

_EXPECTED = "give the output of `virsh dumpxml`"
_QUOTAS = ("global_quota", "quota", "emulator_quota", "iothread_quota")
_PERIODS = ("global_period", "period")

_NOVA = "http://openstack.org/xmlns/libvirt/nova/"
"""The namespace of Nova's metadata, without the version at its end."""


def write_domain(guest: Guest, plugins: Mapping[str, DomainElements] = BUILT_IN) -> str:
    """Return the XML of a domain with the CPUs and the memory of the flavor, and its pinning.

    :param plugins: by name. ``cpu_tiers.extensions.load("cpu_tiers.domain_xml")`` returns the
        plugins of all installed distributions.
    :raises InvalidInput: an extra spec is invalid.
    :raises ExtensionError: two plugins write the same element or attribute.
    """
    domain = E.domain(type="kvm")
    written_by: dict[str, str] = {}
    for name, plugin in {"cpu_tiers": _basics, **plugins}.items():
        for element in plugin(guest):
            merge(name, domain, element, written_by)
    return etree.tostring(domain, pretty_print=True, encoding="unicode")


def _basics(guest: Guest) -> Iterable[_Element]:
    yield E.name(guest.name)
    yield E.memory(str(guest.flavor.memory_mb), unit="MiB")
    # Without pinning, the vCPUs float over cpu_shared_set.
    shared = guest.host.cpu_shared_set
    floats = {"cpuset": str(shared)} if shared and not guest.cells else {}
    yield E.vcpu(str(guest.flavor.vcpus), placement="static", **floats)
    yield E.iothreads("1")  # as in Nova from release 33 on
    yield E.os(E.type("hvm", arch=guest.arch))


def parse_domain(text: bytes, *, where: str) -> Domain:
    """Return the domain in an XML document.

    The host CPUs of a vCPU come from its ``<vcpupin>``, otherwise from ``<vcpu cpuset>``.

    :param text: the XML document, in the encoding that its declaration names.
    :param where: the name of the document in an error.
    :raises InvalidInput: the text is too long, is not XML, has a document type, or is no valid
        domain. The error lists every fault of the domain.
    """
    root = read_root(text, tag="domain", where=where, allowed=_EXPECTED)
    faults = FaultList()
    cpu_sets = CpuSetReader(faults)
    name = root.findtext("name", "").strip()
    if not name:
        faults.add(where, "a domain without a name", _EXPECTED)
    shares = _weight(root, where, faults)
    flavor = _nova_flavor(root)
    domain = Domain(
        name=name,
        uuid=root.findtext("uuid", "").strip() or None,
        shares=shares,
        vcpu_sets=tuple(_vcpu_sets(root, where, faults, cpu_sets)),
        emulator_set=_cpu_set(root.find("cputune/emulatorpin"), where, cpu_sets),
        flavor=None if flavor is None else flavor.get("name"),
        extra_specs=_extra_specs(flavor),
        emulator=root.findtext("devices/emulator", "").strip() or None,
        owner=_owner(root),
        quotas=_microseconds(root, _QUOTAS, where, faults),
        periods=_microseconds(root, _PERIODS, where, faults),
    )
    faults.raise_if_any()
    return domain


def _weight(root: _Element, where: str, faults: FaultList) -> int | None:
    text = root.findtext("cputune/shares")
    if text is None:
        return None
    shares = whole_number(text, f"{where}, shares", faults)
    # whole_number returns 0 with a fault for text that is no number: look at the text itself.
    if text.strip() == "0":
        faults.add(f"{where}, shares", "got '0'", "give a weight of at least 1")
    return shares


def _vcpu_sets(
    root: _Element, where: str, faults: FaultList, cpu_sets: CpuSetReader
) -> Iterable[CpuSet | None]:
    floats = _cpu_set(root.find("vcpu"), where, cpu_sets)
    pins = {
        whole_number(pin.get("vcpu"), f"{where}, vcpupin", faults): _cpu_set(pin, where, cpu_sets)
        for pin in root.findall("cputune/vcpupin")
    }
    return [pins.get(vcpu, floats) for vcpu in _online(root, where, faults)]


def _online(root: _Element, where: str, faults: FaultList) -> Iterable[int]:
    """Return the numbers of the plugged-in vCPUs.

    ``<vcpus>`` lists each vCPU. Without ``<vcpus>`` the first ``<vcpu current>`` vCPUs are
    plugged in, or all vCPUs.
    """
    vcpu = root.find("vcpu")
    if vcpu is None:
        faults.add(where, "no <vcpu>", _EXPECTED)
        return []
    # <vcpus> has the state of each vCPU, <vcpu current> only the number of vCPUs plugged in.
    plugs = root.findall("vcpus/vcpu")
    if plugs:
        on = [plug.get("id") for plug in plugs if plug.get("enabled") == "yes"]
        return [whole_number(number, f"{where}, vcpus", faults) for number in on]
    count = whole_number(vcpu.get("current", vcpu.text), f"{where}, vcpu", faults)
    if count > MAX_CPU:
        faults.add(f"{where}, vcpu", f"{count} vCPUs", f"a domain has at most {MAX_CPU}")
        return []
    return range(count)


def _cpu_set(element: _Element | None, where: str, cpu_sets: CpuSetReader) -> CpuSet | None:
    """Return the CPU set of the attribute ``cpuset``; add a fault if the text is no CPU set."""
    text = None if element is None else element.get("cpuset")
    if element is None or text is None:
        return None
    return cpu_sets.read(text, f"{where}, line {element.sourceline}, cpuset")


def _owner(root: _Element) -> str | None:
    """Return the user of the security label of the DAC driver, such as ``64055`` or ``qemu``.

    The driver writes ``+64055:+109``: the sign says that a number is no name.
    """
    label = root.findtext("seclabel[@model='dac']/label")
    return None if label is None else label.strip().partition(":")[0].removeprefix("+")


def _microseconds(
    root: _Element, names: Iterable[str], where: str, faults: FaultList
) -> Mapping[str, int]:
    """Return the limits or the periods in the XML. A quota below 0 is no limit."""
    times = {}
    for name in names:
        text = root.findtext(f"cputune/{name}", "").strip()
        if text and not text.startswith("-"):
            times[name] = whole_number(text, f"{where}, {name}", faults)
    return times


def _nova_flavor(root: _Element) -> _Element | None:
    for instance in root.findall("metadata/{*}instance"):
        if (QName(instance).namespace or "").startswith(_NOVA):
            return instance.find("{*}flavor")
    return None


def _extra_specs(flavor: _Element | None) -> Mapping[str, str] | None:
    specs = None if flavor is None else flavor.find("{*}extraSpecs")
    if specs is None:
        return None
    return {spec.get("name", ""): spec.text or "" for spec in specs.findall("{*}extraSpec")}
