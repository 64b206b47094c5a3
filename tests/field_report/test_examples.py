"""An example is executed, in a process of its own, and shows its finding or says that it did not."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from field_report.examples import show
from field_report.subjects import Library
from tests.field_report import fakes
from tests.field_report.fakes import finding

LIBRARY = fakes.library(fakes.right, "fake")


def test_numbers_that_differ_are_shown() -> None:
    shown = show(finding(example="got, right = [1.0, 2.0], [1.0, 2.5]"), LIBRARY)
    assert (shown.got, shown.right, shown.reproduced) == ("[1., 2.]", "[1. , 2.5]", True)


@pytest.mark.parametrize(
    ("example", "off_by", "reproduced"),
    [
        ("got, right = [1.0], [1.0]", 1e-3, False),
        ("got, right = [1.0], [1.0 + 1e-8]", 1e-3, False),
        ("got, right = [1.0], [1.0 + 1e-8]", 1e-9, True),
        ("got, right = [float('nan')], [1.0]", 1e-3, True),
        ("got, right = [0.0], [float('nan')]", 1e-3, True),
        ("got, right = [float('nan')], [float('nan')]", 1e-3, False),
        ("raise ValueError('no')", 1e-3, False),
    ],
)
def test_what_shows_a_difference(example: str, off_by: float, reproduced: bool) -> None:
    assert show(finding(example=example, off_by=off_by), LIBRARY).reproduced == reproduced


def test_digits_are_shown_where_the_difference_is() -> None:
    shown = show(finding(example="got, right = [1.0], [1.0 + 1e-8]", off_by=1e-9), LIBRARY)
    assert shown.right == "[1.00000001]"


def test_an_exception_is_shown_by_its_last_line() -> None:
    shown = show(finding(kind="raises", example="raise ValueError('no such shape')"), LIBRARY)
    assert (shown.got, shown.reproduced) == ("ValueError: no such shape", True)
    assert not show(finding(kind="raises", example="got = 1"), LIBRARY).reproduced


def test_an_example_runs_in_the_library_s_environment() -> None:
    library = Library("fake", "numpy", "numpy", "f", "m:f", "https://docs.example", MappingProxyType({"WHICH": "2.5"}))
    example = "import os\ngot, right = [1.0], [float(os.environ['WHICH'])]"
    assert show(finding(example=example), library).right == "[2.5]"
