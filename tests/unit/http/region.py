"""A region of clouds.yaml, as the openstack client has it."""


class RegionOfClient:
    """Stands for the region of clouds.yaml: each setting names its service."""

    def get_service_type(self, service_type: str) -> str:
        return f"type of {service_type}"

    def get_service_name(self, service_type: str) -> str | None:
        return f"name of {service_type}"

    def get_interface(self, service_type: str) -> str:
        return f"interface of {service_type}"

    def get_region_name(self, service_type: str) -> str | None:
        return f"region of {service_type}"

    def get_endpoint(self, service_type: str) -> str | None:
        return f"http://{service_type}"
