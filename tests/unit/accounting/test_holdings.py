from cpu_tiers.accounting.holdings import joined, total, total_of


def test_portions_add_up_by_provider() -> None:
    portions = [{"n0": {"VCPU": 1}}, {"n0": {"VCPU": 2, "PCPU": 3}, "n1": {"VCPU": 4}}]
    assert joined(portions) == {"n0": {"VCPU": 3, "PCPU": 3}, "n1": {"VCPU": 4}}
    assert joined([]) == {}


def test_what_is_held_of_several_providers_adds_up() -> None:
    portion = {"n0": {"VCPU": 1, "MEMORY_MB": 5}, "n1": {"VCPU": 2, "PCPU": 1}}
    sums = {"VCPU": 3, "PCPU": 1, "MEMORY_MB": 5}
    assert total(portion) == sums
    assert total_of({"a": portion, "b": {}}) == {"a": sums, "b": {}}
