"""Values and objects in the formats for programs and for people."""

import io
from argparse import Namespace
from importlib.metadata import entry_points

from cpu_tiers.tools.cloud.flavor_show import FlavorShow
from cpu_tiers.tools.frame.formatting import FormattedValue, SingleObjectCsv, TextFormatter


def test_a_value_is_data_for_programs_and_text_for_people() -> None:
    value = FormattedValue({"VCPU": 2}, lambda amounts: f"{amounts['VCPU']} vCPUs")
    assert value.machine_readable() == {"VCPU": 2}
    assert value.human_readable() == "2 vCPUs"


def test_an_object_as_csv_has_a_line_for_each_field() -> None:
    out = io.StringIO()
    arguments = Namespace(quote_mode="nonnumeric")
    SingleObjectCsv().emit_one(("a", "b,c"), (1, 'x "y"'), out, arguments)
    assert out.getvalue().splitlines() == ['"Field","Value"', '"a",1', '"b,c","x ""y"""']


def test_the_formats_are_not_shared_with_programs_of_other_distributions() -> None:
    group = "cpu_tiers.formatter.show"
    assert FlavorShow.formatter_namespace == group
    assert entry_points(group=group)["csv"].load() is SingleObjectCsv


def test_names_of_a_cloud_do_not_control_the_terminal() -> None:
    out = io.StringIO()
    TextFormatter().emit_one(("a", "b"), ("\x1b[2Jhost\r\nnext", ""), out, Namespace())
    assert out.getvalue() == "\\x1b[2Jhost\\r\nnext\n"
