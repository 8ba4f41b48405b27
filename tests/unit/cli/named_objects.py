"""The answers of a cloud with three flavors, a server, its image and its port."""

SIZES = {"vcpus": 2, "ram": 512, "disk": 5}
SPECS = {"extra_specs": {"hw:numa_nodes": "1"}}
PORT = {
    "id": "p",
    "name": "fast",
    "resource_request": {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 300}},
    "binding:profile": {},
}
EMBEDDED = {"original_name": "gold", "ephemeral": 1, "swap": 1024, **SIZES, **SPECS}
SERVER = {"id": "s", "name": "web", "flavor": EMBEDDED, "image": {"id": "i"}}
IMAGE = {
    "id": "i",
    "name": "",
    "trait:HW_CPU_X86_AVX2": "required",
    "size": 7,
    "disk_format": "qcow2",
}
FLAVORS = [
    {"id": "gold", "name": "seven", "OS-FLV-EXT-DATA:ephemeral": 3, **SIZES, "extra_specs": {}},
    {"id": "7", "name": "gold", **SIZES, **SPECS},
    {"id": "8", "name": "bad", **SIZES, "vcpus": 0, "extra_specs": {}},
]
CLOUD: dict[tuple[str, str], object] = {
    ("compute", "/servers/s"): {"server": SERVER},
    ("compute", "/flavors/detail?is_public=None&limit=1000&sort_key=flavorid"): {
        "flavors": FLAVORS
    },
    ("image", "/v2/images/i"): IMAGE,
    ("network", "/v2.0/ports?device_id=s"): {"ports": [PORT]},
}
