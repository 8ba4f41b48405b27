"""The names of the settings of a session, for the advice in an error."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the settings of a session are, for the advice in an error.

    :param connection: the settings that decide which URL a service has.
    :param credentials: the settings of the user.
    :param authority: the setting of the authority whose certificates are trusted.
    :param certificates: all settings of TLS.
    """

    connection: str
    credentials: str
    authority: str
    certificates: str


NOVA_CONF = Settings(
    connection="auth_url, valid_interfaces, region_name and cafile in [placement]",
    credentials="username, password, project_name and their domains in [placement] of nova.conf",
    authority="cafile in [placement] of nova.conf",
    certificates="cafile, certfile and keyfile in [placement] of nova.conf",
)
OPENSTACK_CLIENT = Settings(
    connection="auth_url, interface, region_name and cacert in clouds.yaml or OS_*",
    credentials="username, password, project and their domains in clouds.yaml or OS_*",
    authority="cacert in clouds.yaml, or OS_CACERT,",
    certificates="cacert, cert and key in clouds.yaml, or OS_CACERT, OS_CERT and OS_KEY",
)
