"""Translate a flavor to a query string: cpu-tiers against Nova's ``ResourceRequest``.

Each side gets its own objects, made beforehand, and returns a string. Nova
has to be installed (dependency group ``bench``).
"""

import sys
import timeit
from collections.abc import Callable, Iterator, Mapping
from time import process_time

from measure import Ratio, number_of_rounds, report
from nova import objects
from nova.scheduler.utils import ResourceRequest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.translators import ServerRequest, translate

ROUNDS, CALLS = number_of_rounds(30), 200
GOAL = 0.2

GOLD = {"quota:cpu_shares_multiplier": "100"}
FLAVORS: Mapping[str, Mapping[str, str]] = {
    "gold": GOLD,
    "gold with traits and resources": GOLD
    | {
        "trait:HW_CPU_X86_AVX2": "required",
        "trait:HW_CPU_X86_SGX": "forbidden",
        "trait:CUSTOM_GOLD": "required",
        "resources:CUSTOM_LICENSE": "1",
        "resources1:VGPU": "1",
        "trait1:CUSTOM_VGPU_SMALL": "required",
    },
}


def ours(extra_specs: Mapping[str, str]) -> Callable[[], str]:
    """Return the function of cpu-tiers from a server to the query string."""
    flavor = Flavor(name="gold", vcpus=4, memory_mb=8192, root_gb=20, extra_specs=extra_specs)
    image = Image(name="plain")

    def query() -> str:
        # A new one each time: it keeps what was worked out of the flavor.
        server = ServerRequest(flavor, image, query_vcpu_shares=True)
        return translate(server).to_query_string()

    return query


def novas(extra_specs: Mapping[str, str]) -> Callable[[], str]:
    """Return the function of Nova from a request spec to the query string."""
    flavor = objects.Flavor(
        name="gold",
        flavorid="gold",
        vcpus=4,
        memory_mb=8192,
        root_gb=20,
        ephemeral_gb=0,
        swap=0,
        extra_specs=dict(extra_specs),
    )
    image = objects.ImageMeta(name="plain", properties=objects.ImageMetaProps())
    spec = objects.RequestSpec(flavor=flavor, image=image, requested_resources=[], is_bfv=False)

    def query() -> str:
        return str(ResourceRequest.from_request_spec(spec).to_querystring())

    return query


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of each flavor."""
    for name, extra_specs in FLAVORS.items():
        calls = ours(extra_specs), novas(extra_specs)
        rounds = [
            [timeit.timeit(call, timer=process_time, number=CALLS) for call in calls]
            for _ in range(ROUNDS)
        ]
        mine, theirs = (min(column) / CALLS for column in zip(*rounds, strict=True))
        detail = f"{mine * 1e6:.1f} us of {theirs * 1e6:.1f} us"
        yield Ratio(what=name, ratio=mine / theirs, goal=GOAL, detail=detail)


if __name__ == "__main__":
    objects.register_all()
    sys.exit(report("Flavor to query string / Nova's ResourceRequest", ratios()))
