"""Makes what a new cloud has: users and endpoints of the services, and images.

Nothing of it exists yet; an exception of the SDK ends the start of the cloud.
"""

import sys

import openstack

SERVICES = {
    "placement": ("placement", "8778"),
    "glance": ("image", "9292"),
    "neutron": ("network", "9696"),
    "nova": ("compute", "8774/v2.1"),
}
"""The type, and the port and path, of each service."""

IMAGES = {"busy": b"\xeb\xfe", "halted": b"\xfa\xf4\xeb\xfd"}
"""The code of each image: ``jmp $`` uses all CPU time that the guest gets, ``cli; hlt`` none."""

PARTITION = bytes([0x80, 0, 2, 0, 0x83, 0, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0])
"""Glance refuses a boot sector without a partition."""


def identities(cloud: openstack.connection.Connection) -> None:
    """Make the users and endpoints; a user has the roles that Nova's guides give it."""
    project = cloud.identity.create_project(name="service", domain_id="default")
    roles = [cloud.identity.find_role(name) for name in ("admin", "service")]
    for name, (kind, path) in SERVICES.items():
        user = cloud.identity.create_user(
            name=name,
            password="secret",  # noqa: S106  # as in the files in etc; only this machine sees it
            domain_id="default",
        )
        for role in roles:
            cloud.identity.assign_project_role_to_user(project, user, role)
        service = cloud.identity.create_service(name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            cloud.identity.create_endpoint(
                service_id=service.id,
                interface=interface,
                region_id="RegionOne",
                url=f"http://controller:{path}",
            )


def images(cloud: openstack.connection.Connection) -> None:
    """Upload the images, of 1 MiB each."""
    for name, code in IMAGES.items():
        sector = code.ljust(446, b"\0") + PARTITION.ljust(64, b"\0") + b"\x55\xaa"
        cloud.image.create_image(
            name=name,
            data=sector.ljust(1024**2, b"\0"),
            disk_format="raw",
            container_format="bare",
            visibility="public",
            validate_checksum=False,
        )


if __name__ == "__main__":
    {"identities": identities, "images": images}[sys.argv[1]](openstack.connect())
