"""The flavors of a real nova-api, and the keys that it knows."""

import re
from unittest import mock

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from nova.api.validation.extra_specs import validators

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.compute_api import ComputeApiUnavailable, read_flavors
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.tiers.flavor_advice import KEYS, misspelt_keys
from tests.nova.cloud import Cloud


def test_every_key_of_nova_is_known() -> None:
    names = (re.sub(r"\{num\}$", "7", name) for name in validators.VALIDATORS)
    specs = {name: "1" for name in names if "{" not in name}
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=specs)
    assert [fault.where for fault in misspelt_keys(flavor)] == []
    assert len(KEYS & validators.VALIDATORS.keys()) > 60


class TestFlavors(Cloud):
    def nova(self, user: str = "admin") -> Services:
        """Return nova-api, with a token as Nova's noauth2 reads it."""
        token = Token(endpoint=self.api.base_url, token=f"{user}:{self.api.project_id}")
        headers = {
            "X-Auth-User": user,
            "X-Auth-Project-Id": self.api.project_id,
            "X-Roles": "admin,member,reader",
        }
        session = Session(auth=token, additional_headers=headers)
        return Services(adapter=lambda kind: Adapter(session, service_type=kind))

    def test_all_flavors_with_extra_specs_page_by_page(self) -> None:
        identifier = self.flavor("hidden", {"hw:cpu_policy": "shared"})
        with mock.patch("cpu_tiers.tools.compute_api.PAGE", 2):
            flavors = {flavor["name"]: flavor for flavor in read_flavors(self.nova())}
        listed = self.api.api_get("/flavors/detail?is_public=None").body["flavors"]
        assert len(listed) > 4
        assert flavors.keys() == {flavor["name"] for flavor in listed}
        assert flavors["hidden"]["extra_specs"] == {"hw:cpu_policy": "shared"}
        assert flavors["hidden"]["id"] == identifier

    def test_a_policy_that_hides_extra_specs_is_an_error(self) -> None:
        """Flavors without their extra specs would look free of faults."""
        self.policy.set_rules({"os_compute_api:os-flavor-extra-specs:index": "!"}, overwrite=False)
        with pytest.raises(
            ComputeApiUnavailable, match="os-extra_specs: Nova's API cannot be asked"
        ):
            list(read_flavors(self.nova()))
