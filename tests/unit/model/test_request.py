"""Request groups as the query string of GET /allocation_candidates."""

from urllib.parse import parse_qs

from cpu_tiers.model.request import CandidateQuery, GroupDraft, RequestGroup

TRAITS = frozenset({"CUSTOM_B", "CUSTOM_A"})


def test_a_group_as_parameters_in_a_fixed_order() -> None:
    group = RequestGroup(
        suffix="_1",
        resources={"VCPU": 2, "MEMORY_MB": 64},
        required=TRAITS,
        forbidden=frozenset({"CUSTOM_C"}),
        any_of=frozenset({frozenset({"CUSTOM_Y", "CUSTOM_X"}), frozenset({"CUSTOM_D"})}),
        in_tree="0f0aa8a0",
    )
    assert list(group.parameters()) == [
        ("resources_1", "MEMORY_MB:64,VCPU:2"),
        ("required_1", "CUSTOM_A,CUSTOM_B,!CUSTOM_C"),
        ("required_1", "in:CUSTOM_D"),
        ("required_1", "in:CUSTOM_X,CUSTOM_Y"),
        ("in_tree_1", "0f0aa8a0"),
    ]


def test_an_empty_group_has_no_parameters() -> None:
    assert list(RequestGroup().parameters()) == []
    assert not RequestGroup(resources={"VCPU": 1}).has_traits
    assert RequestGroup(any_of=frozenset({TRAITS})).has_traits


def test_a_query_string() -> None:
    query = CandidateQuery(
        groups=(RequestGroup(resources={"VCPU": 1}), RequestGroup("_A", {"VCPU": 2, "VGPU": 1})),
        group_policy="none",
        same_subtree=(("_A", "_B"),),
        root_required=frozenset({"CUSTOM_A"}),
        root_forbidden=frozenset({"CUSTOM_B"}),
    )
    text = query.to_query_string()
    assert text == (
        "resources=VCPU:1&resources_A=VCPU:2,VGPU:1&root_required=CUSTOM_A,!CUSTOM_B"
        "&same_subtree=_A,_B&group_policy=none"
    )
    assert parse_qs(text, strict_parsing=True)["root_required"] == ["CUSTOM_A,!CUSTOM_B"]
    assert query.resources() == {"VCPU": 3, "VGPU": 1}  # 1 + 2 VCPU
    assert query.in_subtrees == {"_A", "_B"}


def test_the_microversion_that_can_answer() -> None:
    plain = RequestGroup(resources={"VCPU": 1})
    assert CandidateQuery(groups=(plain,)).microversion == (1, 36)
    any_of = plain._replace(any_of=frozenset({TRAITS}))
    assert CandidateQuery(groups=(plain, any_of)).microversion == (1, 39)


def test_the_traits_that_a_query_names() -> None:
    groups = (
        RequestGroup(required=frozenset({"CUSTOM_A"}), forbidden=frozenset({"CUSTOM_NOT"})),
        RequestGroup("_1", any_of=frozenset({frozenset({"CUSTOM_B"}), frozenset({"CUSTOM_C"})})),
    )
    query = CandidateQuery(groups=groups, root_required=frozenset({"CUSTOM_D"}))
    assert query.required_traits() == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"}
    assert CandidateQuery(groups=()).required_traits() == frozenset()


def test_a_frozen_draft_does_not_follow_the_drafts_traits() -> None:
    draft = GroupDraft()
    draft.required.add("CUSTOM_A")
    draft.resources["VGPU"] = 1
    group = draft.freeze("_1")
    draft.required.add("CUSTOM_B")
    assert group == RequestGroup("_1", {"VGPU": 1}, required=frozenset({"CUSTOM_A"}))
