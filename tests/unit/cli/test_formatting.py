"""Values and objects in the formats for programs and for people."""

import io
from argparse import Namespace
from importlib.metadata import distribution

from cpu_tiers.tools.cloud.flavor_show import FlavorShow
from cpu_tiers.tools.frame.app import CpuTiersApp
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


def test_the_formats_of_cpu_tiers_are_no_entry_points() -> None:
    """Others could take entry points for a promise, and find the formats in their programs."""
    groups = distribution("cpu-tiers").entry_points.groups
    assert "cpu_tiers.translators" in groups
    assert not [group for group in groups if "formatter" in group]
    help_text = FlavorShow(CpuTiersApp(), None).get_parser("x").format_help()
    assert "{csv,json,shell,table,value,yaml}" in help_text


def test_names_of_a_cloud_do_not_control_the_terminal() -> None:
    out = io.StringIO()
    TextFormatter().emit_one(("a", "b"), ("\x1b[2Jhost\r\nnext", ""), out, Namespace())
    assert out.getvalue() == "\\x1b[2Jhost\\r\nnext\n"
