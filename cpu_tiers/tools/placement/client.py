"""A client of Placement with a method for each API call that cpu-tiers makes.

The methods take and return the values of :mod:`~cpu_tiers.placement.records`, and raise a
:class:`~cpu_tiers.placement.errors.PlacementError` for every failure.

Source: Placement API reference, https://docs.openstack.org/api-ref/placement/
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlencode

from cpu_tiers.accounting.holdings import Amounts, ConsumerId
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.names import is_custom
from cpu_tiers.model.providers import Provider
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.placement.errors import DuplicateName, UnknownNames
from cpu_tiers.placement.records import Consumer, Inventories, ListedProvider, Traits
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import NOVA_CONF, Settings
from cpu_tiers.tools.placement.candidate_answer import read_answer
from cpu_tiers.tools.placement.exchange import Exchange, Transport
from cpu_tiers.tools.placement.response import PlacementResponse


class PlacementClient:
    """A client of Placement on top of a keystoneauth1 ``Adapter``.

    :param transport: the adapter. The client sends nothing until a method is called.
    :param retry_policy: how often and how long to repeat a request, and an operation that other
        clients interfere with.
    :param gives_back_oversold: look after each claim whether Placement has allocated more than the
        capacity, and give the claim back then (:mod:`~cpu_tiers.tools.placement.conflicts`).
    :param settings: where the settings of the transport are, for the advice in an error.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        retry_policy: RetryPolicy | None = None,
        gives_back_oversold: bool = False,
        settings: Settings = NOVA_CONF,
    ) -> None:
        self.gives_back_oversold = gives_back_oversold
        self.retry_policy = retry_policy or RetryPolicy()
        self._exchange = Exchange(transport, self.retry_policy, settings)

    @property
    def microversion(self) -> tuple[int, int]:
        """Return the microversion in use, such as ``(1, 39)``."""
        return self._exchange.microversion

    @property
    def known_cloud(self) -> SimulatedCloud | None:
        """Return the whole cloud if it is in memory, as with a snapshot; ``None`` if not."""
        return None

    # Queries

    def candidates(self, query: CandidateQuery) -> CandidatesAnswer:
        """Return the allocation candidates for ``query``.

        Placement refuses a query with unknown custom resource classes or traits;
        :meth:`ensure_names` creates them.

        :raises PlacementVersionTooOld: the query needs a newer microversion.
        """
        self._exchange.require_microversion(query.microversion)
        path = f"/allocation_candidates?{query.to_query_string()}"
        response = self._exchange.request("GET", path)
        try:
            return read_answer(response.body, where="allocation candidates")
        except InvalidInput as error:
            raise response.invalid(f"JSON of another shape: {error}") from error

    # Names (decision D112)

    def absent_names(
        self, classes: Collection[str], traits: Collection[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the custom resource classes and traits that Placement lacks.

        :raises UnknownNames: Placement lacks standard names, which only an upgrade can add.
        """
        absent_classes, absent_traits = frozenset(classes), frozenset(traits)
        if classes:
            absent_classes -= self._known("resource_classes")
        if traits:
            absent_traits -= self._known("traits")
        unknown = sorted(name for name in absent_classes | absent_traits if not is_custom(name))
        if unknown:
            raise UnknownNames(
                f"this Placement does not know {', '.join(unknown)}; a name without CUSTOM_"
                " comes with its os-resource-classes or os-traits: upgrade them there",
                names=tuple(unknown),
            )
        return absent_classes, absent_traits

    def has_resource_class(self, name: str) -> bool:
        """Tell whether Placement knows a resource class."""
        return name in self._known("resource_classes")

    def traits_in_use(self) -> frozenset[str]:
        """Return the traits of all providers."""
        return self._known("traits", "?associated=true")

    def custom_traits(self) -> frozenset[str]:
        """Return the custom traits that Placement knows, also those of no provider."""
        return frozenset(filter(is_custom, self._known("traits")))

    def _known(self, kind: str, only: str = "") -> frozenset[str]:
        response = self._exchange.request("GET", f"/{kind}{only}")
        names: Iterable[object] = response.read(response.body, kind, list)
        if kind == "resource_classes":
            names = (response.read(item, "name", str) for item in names)
        return frozenset(map(str, names))

    def create_resource_class(self, name: str) -> None:
        """Create a custom resource class, unless it exists already."""
        self._exchange.request("PUT", f"/resource_classes/{name}").expect_status(201, 204)

    def create_trait(self, name: str) -> None:
        """Create a custom trait, unless it exists already."""
        self._exchange.request("PUT", f"/traits/{name}").expect_status(201, 204)

    def ensure_names(
        self, classes: Collection[str] = (), traits: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Create missing custom resource classes and traits in Placement, and return their names.

        :raises UnknownNames: Placement lacks standard names. Nothing is created in this case.
        """
        absent_classes, absent_traits = self.absent_names(classes, traits)
        for name in sorted(absent_classes):
            self.create_resource_class(name)
        for name in sorted(absent_traits):
            self.create_trait(name)
        return (*sorted(absent_classes), *sorted(absent_traits))

    # Providers

    def find_provider(self, name: str) -> Provider | None:
        """Return the provider with this name, or ``None`` if Placement has no such provider."""
        providers = self._listed(urlencode({"name": name}))
        # Placement on MySQL ignores case when it compares names, so the answer to
        # ?name=Compute1 may be the provider compute1.
        return next((provider for provider in providers if provider.name == name), None)

    def provider(self, provider_uuid: str) -> Provider:
        """Return the provider with this uuid."""
        response = self._exchange.request("GET", f"/resource_providers/{provider_uuid}")
        return response.provider(response.body)

    def providers_in_tree(self, provider_uuid: str) -> tuple[Provider, ...]:
        """Return all providers in the tree of this provider."""
        return self._listed(f"in_tree={provider_uuid}")

    def providers(self) -> tuple[Provider, ...]:
        """Return all providers of the cloud; a large cloud has thousands."""
        return self._listed("")

    def listed_providers(self) -> tuple[ListedProvider, ...]:
        """Return all providers of the cloud, with their generations."""
        response = self._exchange.request("GET", "/resource_providers?")
        items = response.read(response.body, "resource_providers", list)
        return tuple(
            ListedProvider(response.provider(item), response.read(item, "generation", int))
            for item in items
        )

    def providers_with_trait(self, name: str, *, without: str = "") -> tuple[Provider, ...]:
        """Return the providers with a trait; none has a trait that Placement does not know.

        :param without: leave out the providers with this trait, which Placement has to know.
        """
        # Placement answers 400 to ?required= with a trait that it does not know.
        forbidden = f",!{without}" if without else ""
        return self._listed(f"required={name}{forbidden}", expected=(400,))

    def providers_in_aggregate(self, aggregate: str) -> tuple[Provider, ...]:
        """Return the providers in an aggregate."""
        return self._listed(f"member_of={aggregate}")

    def providers_with_room(self, name: str, amount: int) -> tuple[Provider, ...]:
        """Return the providers of which a single claim may take an amount of a resource class.

        None has room of a class that Placement does not know.
        """
        return self._listed(f"resources={name}:{amount}", expected=(400,))

    def _listed(self, query: str, expected: Collection[int] = ()) -> tuple[Provider, ...]:
        path = f"/resource_providers?{query}"
        response = self._exchange.request("GET", path, expected=expected)
        if response.status in expected:
            return ()
        items = response.read(response.body, "resource_providers", list)
        return tuple(map(response.provider, items))

    def create_provider(
        self, name: str, *, parent_uuid: str | None = None, provider_uuid: str | None = None
    ) -> Provider:
        """Create a provider.

        :param provider_uuid: the uuid of the new provider; random by default.
        :raises DuplicateName: another provider has this name already.
        """
        # The client chooses the uuid, not Placement. If the answer to the first POST was
        # lost, the repeated POST is refused as a duplicate, and the uuid tells whether the
        # existing provider is the provider of the first POST.
        new_uuid = provider_uuid or str(uuid.uuid4())
        body = {"name": name, "uuid": new_uuid, "parent_provider_uuid": parent_uuid}
        try:
            response = self._exchange.request("POST", "/resource_providers", json=body)
        except DuplicateName:
            existing = self.find_provider(name)
            if existing is None or existing.uuid != new_uuid:
                raise
            return existing
        return response.provider(response.body)

    def delete_provider(self, provider_uuid: str) -> None:
        """Delete a provider, if the provider still exists.

        :raises ProviderInUse: servers hold allocations of the provider.
        """
        path = f"/resource_providers/{provider_uuid}"
        # 404 also answers a repeated DELETE whose first answer was lost.
        self._exchange.request("DELETE", path, expected=(404,)).expect_status(204, 404)

    def inventories(self, provider_uuid: str) -> Inventories:
        """Return the inventories of a provider."""
        return self._of_provider(provider_uuid, "inventories").inventories()

    def set_inventories(self, provider_uuid: str, inventories: Inventories) -> Inventories:
        """Replace all inventories of a provider, and return them with their new generation.

        :raises GenerationConflict: the provider has another generation by now.
        :raises InventoryInUse: servers hold allocations of a removed resource class.
        """
        body = inventories.to_json()
        return self._of_provider(provider_uuid, "inventories", body).inventories()

    def traits(self, provider_uuid: str) -> Traits:
        """Return the traits of a provider."""
        return self._of_provider(provider_uuid, "traits").traits()

    def set_traits(self, provider_uuid: str, traits: Traits) -> Traits:
        """Replace all traits of a provider, and return them with their new generation.

        :raises GenerationConflict: the provider has another generation by now.
        """
        names = sorted(traits.names)
        body = {"resource_provider_generation": traits.generation, "traits": names}
        return self._of_provider(provider_uuid, "traits", body).traits()

    def aggregates(self, provider_uuid: str) -> frozenset[str]:
        """Return the uuids of the aggregates that a provider is in."""
        response = self._of_provider(provider_uuid, "aggregates")
        return frozenset(map(str, response.read(response.body, "aggregates", list)))

    def usages(self, provider_uuid: str) -> dict[str, int]:
        """Return the allocated amounts of a provider, by resource class."""
        response = self._of_provider(provider_uuid, "usages")
        return dict(response.amounts(response.body, "usages"))

    def allocations(self, provider_uuid: str) -> dict[ConsumerId, Amounts]:
        """Return the amounts that each consumer has of a provider, by the consumer's uuid."""
        response = self._of_provider(provider_uuid, "allocations")
        allocations = response.read(response.body, "allocations", dict)
        return {
            ConsumerId(consumer): response.amounts(allocation, "resources")
            for consumer, allocation in allocations.items()
        }

    def _of_provider(self, uuid: str, kind: str, body: object = None) -> PlacementResponse:
        """Read a kind of data of a provider, or replace all data of the kind."""
        method = "GET" if body is None else "PUT"
        return self._exchange.request(method, f"/resource_providers/{uuid}/{kind}", json=body)

    # Consumers

    def consumer(self, consumer_uuid: str) -> Consumer:
        """Return a consumer; a consumer unknown to Placement has no allocations."""
        response = self._exchange.request("GET", f"/allocations/{consumer_uuid}")
        return response.consumer(consumer_uuid)

    def set_consumers(self, *consumers: Consumer) -> None:
        """Replace the allocations of several consumers in one transaction.

        The request is sent again after a lost answer only if all consumers are new: Placement
        begins the generation of a removed consumer anew, so the old generation is valid again
        after another client has freed the consumer and claimed for it.

        :raises PlacementUnavailable: no answer; with ``needs_read`` unless all consumers are new.
        :raises GenerationConflict: a consumer has another generation by now, or another
            client writes a provider at the same time.
        :raises InsufficientCapacity: an allocation does not fit into the inventories.
        """
        with_type = self.microversion >= (1, 38)
        body = {consumer.uuid: consumer.to_json(with_type=with_type) for consumer in consumers}
        are_new = all(consumer.generation is None for consumer in consumers)
        answer = self._exchange.request("POST", "/allocations", json=body, is_repeated=are_new)
        answer.expect_status(204)

    def delete_allocations(self, consumer_uuid: str) -> None:
        """Delete all allocations of a consumer, whatever its generation; it may have none."""
        path = f"/allocations/{consumer_uuid}"
        self._exchange.request("DELETE", path, expected=(404,)).expect_status(204, 404)

    def reshape(
        self, inventories: Mapping[str, Inventories], consumers: Iterable[Consumer]
    ) -> None:
        """Replace inventories and allocations in one transaction.

        :param inventories: all inventories of each provider, by its uuid.
        :raises GenerationConflict: a provider or a consumer has another generation by now.
        :raises InsufficientCapacity: an allocation does not fit into the new inventories.
        :raises InventoryInUse: servers hold allocations of a removed resource class.
        """
        with_type = self.microversion >= (1, 38)
        body = {
            "inventories": {uuid: item.to_json() for uuid, item in inventories.items()},
            "allocations": {item.uuid: item.to_json(with_type=with_type) for item in consumers},
        }
        self._exchange.request("POST", "/reshaper", json=body).expect_status(204)
