import pytest

from cpu_tiers.extra_specs.numa import absent_pages
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.numa import LARGE_PAGES_TRAIT, SMALL_PAGES_TRAIT

SMALL, LARGE = SMALL_PAGES_TRAIT, LARGE_PAGES_TRAIT
BOTH = {"HW_CPU_X86_AVX2", SMALL, LARGE, *(f"CUSTOM_MEMORY_PAGE_SIZE_{n}" for n in (2048, 4))}


def flavor(size: str | None) -> Flavor:
    specs = {} if size is None else {"hw:mem_page_size": size}
    return Flavor(name="gold", vcpus=1, memory_mb=1024, extra_specs=specs)


@pytest.mark.parametrize("size", [None, "any", "small", "large", "2048", "2MB", "4"])
def test_pages_that_some_host_reports(size: str | None) -> None:
    assert absent_pages(flavor(size), None, BOTH) is None


@pytest.mark.parametrize("traits", [frozenset(), {"HW_CPU_X86_AVX2", "CUSTOM_MEMORY_PAGE_SIZE_X"}])
def test_hosts_that_report_no_pages_may_have_any(traits: frozenset[str]) -> None:
    assert absent_pages(flavor("1GB"), None, traits) is None


def test_pages_that_no_host_reports() -> None:
    fault = absent_pages(flavor("1GB"), None, BOTH)
    assert str(fault) == (
        "flavor gold, extra spec hw:mem_page_size: asks for pages of 1048576 kB, and no host"
        " that reports its NUMA nodes has such pages; these hosts have pages of 4, 2048 kB"
    )


def test_large_pages_on_hosts_with_small_pages_only() -> None:
    fault = absent_pages(flavor("large"), None, {SMALL, "CUSTOM_MEMORY_PAGE_SIZE_64"})
    assert fault is not None
    assert (
        fault.given
        == "asks for large pages, and no host that reports its NUMA nodes has such pages"
    )
    assert fault.allowed == "these hosts have pages of 64 kB"


def test_an_image_that_chose_the_pages() -> None:
    image = Image(name="dpdk", properties={"hw_mem_page_size": "1GB"})
    fault = absent_pages(flavor("large"), image, BOTH)
    assert fault is not None
    assert fault.where == "image dpdk, property hw_mem_page_size"
