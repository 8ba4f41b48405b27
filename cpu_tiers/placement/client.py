"""The verbs of Placement's API that cpu-tiers uses, one method each.

Values in, values out; every failure is a
:class:`~cpu_tiers.placement.errors.PlacementError`. What takes several
requests stands in :mod:`~cpu_tiers.placement.sync` and
:mod:`~cpu_tiers.placement.allocations`.

Source: Placement API reference, https://docs.openstack.org/api-ref/placement/
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlencode

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.names import is_custom
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.placement.errors import DuplicateName, UnknownNames
from cpu_tiers.placement.exchange import Exchange, Patience, Transport
from cpu_tiers.placement.records import Consumer, Inventories, Provider, Traits


class PlacementClient:
    """Placement, reached through a keystoneauth1 ``Adapter``.

    :param transport: the adapter; nothing is sent before the first verb.
    :param patience: how long to try again while there is no answer.
    """

    def __init__(self, transport: Transport, *, patience: Patience | None = None) -> None:
        """Keep the transport; the microversion is agreed on at the first request."""
        self._exchange = Exchange(transport, patience or Patience())

    @property
    def microversion(self) -> tuple[int, int]:
        """Return the microversion in use, such as ``(1, 39)``."""
        return self._exchange.microversion

    # Queries

    def candidates(self, query: CandidateQuery, *, limit: int | None = None) -> CandidatesAnswer:
        """Return the ways to place what ``query`` asks for.

        The query's custom names must exist (see :meth:`ensure_names`), or
        Placement refuses it.

        :param limit: the most allocation requests to return.
        :raises PlacementVersionTooOld: the query needs a newer microversion.
        """
        self._exchange.must_have(query.microversion)
        path = f"/allocation_candidates?{query.to_query_string()}"
        answer = self._exchange.request("GET", path if limit is None else f"{path}&limit={limit}")
        try:
            return CandidatesAnswer.parse(answer.body(), where="allocation candidates")
        except InvalidInput as error:
            raise answer.invalid(f"JSON of another shape: {error}") from error

    # Names (decision D1)

    def absent_names(
        self, classes: Collection[str], traits: Collection[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return those resource classes and traits that can and must be created.

        :raises UnknownNames: standard names that this Placement does not know.
        """
        absent_classes = frozenset(classes) - self._known("resource_classes", bool(classes))
        absent_traits = frozenset(traits) - self._known("traits", bool(traits))
        unknown = sorted(name for name in absent_classes | absent_traits if not is_custom(name))
        if unknown:
            raise UnknownNames(
                f"this Placement does not know {', '.join(unknown)}; a name without CUSTOM_"
                " comes with its os-resource-classes or os-traits: upgrade them there",
                names=unknown,
            )
        return absent_classes, absent_traits

    def traits_in_use(self) -> frozenset[str]:
        """Return every trait that some provider has."""
        return self._known("traits", wanted=True, only="?associated=true")

    def _known(self, kind: str, wanted: bool, only: str = "") -> frozenset[str]:
        if not wanted:
            return frozenset()
        answer = self._exchange.request("GET", f"/{kind}{only}")
        names: Iterable[object] = answer.read(answer.body(), kind, list)
        if kind == "resource_classes":
            names = (answer.read(item, "name", str) for item in names)
        return frozenset(map(str, names))

    def create_resource_class(self, name: str) -> None:
        """Create a custom resource class; one that exists is left as it is."""
        self._exchange.request("PUT", f"/resource_classes/{name}").must_be(201, 204)

    def create_trait(self, name: str) -> None:
        """Create a custom trait; one that exists is left as it is."""
        self._exchange.request("PUT", f"/traits/{name}").must_be(201, 204)

    def ensure_names(
        self, classes: Collection[str] = (), traits: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Create the custom names that Placement lacks, and return them.

        :raises UnknownNames: standard names that this Placement does not know;
            nothing is created then.
        """
        absent_classes, absent_traits = self.absent_names(classes, traits)
        for name in sorted(absent_classes):
            self.create_resource_class(name)
        for name in sorted(absent_traits):
            self.create_trait(name)
        return (*sorted(absent_classes), *sorted(absent_traits))

    # Providers

    def find_provider(self, name: str) -> Provider | None:
        """Return the provider of this name, or None where there is none."""
        found = self._providers({"name": name})
        # Placement on MySQL compares names without regard to case.
        return next((provider for provider in found if provider.name == name), None)

    def provider(self, provider_uuid: str) -> Provider:
        """Return the provider of this uuid."""
        answer = self._exchange.request("GET", f"/resource_providers/{provider_uuid}")
        return Provider.read(answer, answer.body())

    def providers_in_tree(self, provider_uuid: str) -> tuple[Provider, ...]:
        """Return every provider of the tree that this one belongs to."""
        return self._providers({"in_tree": provider_uuid})

    def providers(self) -> tuple[Provider, ...]:
        """Return every provider; a large cloud has thousands."""
        return self._providers({})

    def providers_with_trait(self, name: str) -> tuple[Provider, ...]:
        """Return the providers that have a trait; none if Placement does not know it."""
        if name not in self._known("traits", wanted=True):
            return ()
        return self._providers({"required": name})

    def _providers(self, filters: dict[str, str]) -> tuple[Provider, ...]:
        answer = self._exchange.request("GET", f"/resource_providers?{urlencode(filters)}")
        found = answer.read(answer.body(), "resource_providers", list)
        return tuple(Provider.read(answer, item) for item in found)

    def create_provider(
        self, name: str, *, parent_uuid: str | None = None, provider_uuid: str | None = None
    ) -> Provider:
        """Create a provider.

        :param provider_uuid: a new one if it is not given.
        :raises DuplicateName: there is one of this name.
        """
        # chosen here, so that a lost answer can be looked up
        ours = provider_uuid or str(uuid.uuid4())
        body = {"name": name, "uuid": ours, "parent_provider_uuid": parent_uuid}
        try:
            answer = self._exchange.request("POST", "/resource_providers", json=body)
        except DuplicateName:
            found = self.find_provider(name)
            if found is None or found.uuid != ours:
                raise
            return found
        return Provider.read(answer, answer.body())

    def delete_provider(self, provider_uuid: str) -> None:
        """Delete a provider; one that is gone already is no error.

        :raises ProviderInUse: servers hold allocations of it.
        """
        path = f"/resource_providers/{provider_uuid}"
        self._exchange.request("DELETE", path, expected=(404,)).must_be(204, 404)

    def inventories(self, provider_uuid: str) -> Inventories:
        """Return the inventories of a provider."""
        path = f"/resource_providers/{provider_uuid}/inventories"
        return Inventories.read(self._exchange.request("GET", path))

    def set_inventories(self, provider_uuid: str, inventories: Inventories) -> Inventories:
        """Replace all inventories of a provider; return them as of the new generation.

        :raises GenerationConflict: they are no longer of that generation.
        :raises InventoryInUse: a class that would go has allocations.
        """
        path = f"/resource_providers/{provider_uuid}/inventories"
        return Inventories.read(self._exchange.request("PUT", path, json=inventories.to_json()))

    def traits(self, provider_uuid: str) -> Traits:
        """Return the traits of a provider."""
        path = f"/resource_providers/{provider_uuid}/traits"
        return Traits.read(self._exchange.request("GET", path))

    def set_traits(self, provider_uuid: str, traits: Traits) -> Traits:
        """Replace all traits of a provider; return them as of the new generation.

        :raises GenerationConflict: they are no longer of that generation.
        """
        path = f"/resource_providers/{provider_uuid}/traits"
        body = {
            "resource_provider_generation": traits.generation,
            "traits": sorted(traits.names),
        }
        return Traits.read(self._exchange.request("PUT", path, json=body))

    def usages(self, provider_uuid: str) -> dict[str, int]:
        """Return what is allocated of a provider, by resource class."""
        answer = self._exchange.request("GET", f"/resource_providers/{provider_uuid}/usages")
        return dict(answer.read(answer.body(), "usages", dict))

    def allocations(self, provider_uuid: str) -> dict[str, Mapping[str, int]]:
        """Return what every consumer holds of a provider, by its uuid."""
        path = f"/resource_providers/{provider_uuid}/allocations"
        answer = self._exchange.request("GET", path)
        held = answer.read(answer.body(), "allocations", dict)
        return {consumer: answer.read(held[consumer], "resources", dict) for consumer in held}

    # Consumers

    def consumer(self, consumer_uuid: str) -> Consumer:
        """Return a consumer; without allocations where Placement knows none."""
        answer = self._exchange.request("GET", f"/allocations/{consumer_uuid}")
        return Consumer.read(consumer_uuid, answer)

    def set_consumers(self, *consumers: Consumer) -> None:
        """Replace the allocations of all these consumers at once, or of none.

        :raises GenerationConflict: one is no longer of its generation, or a
            provider is being written.
        :raises InsufficientCapacity: they do not fit.
        """
        with_type = self.microversion >= (1, 38)
        body = {consumer.uuid: consumer.to_json(with_type=with_type) for consumer in consumers}
        self._exchange.request("POST", "/allocations", json=body).must_be(204)

    def reshape(
        self, inventories: Mapping[str, Inventories], consumers: Iterable[Consumer]
    ) -> None:
        """Replace inventories and allocations, all in one transaction or none.

        :param inventories: by provider; each one's are replaced.
        :raises GenerationConflict: a provider or consumer is no longer of its
            generation.
        :raises InsufficientCapacity: an allocation does not fit.
        :raises InventoryInUse: a class that would go still has allocations.
        """
        with_type = self.microversion >= (1, 38)
        body = {
            "inventories": {uuid: item.to_json() for uuid, item in inventories.items()},
            "allocations": {item.uuid: item.to_json(with_type=with_type) for item in consumers},
        }
        self._exchange.request("POST", "/reshaper", json=body).must_be(204)
