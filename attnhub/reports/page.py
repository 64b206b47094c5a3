"""The pieces of the HTML page: elements made in one expression, tables, and its style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree

from attnhub.reports.text import legal

Node = ElementTree.Element

#: Marks and words carry every meaning, for black and white paper drops the colours.
STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 75rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.35rem; border-top: 2px solid #ccc; padding-top: 1rem; margin-top: 2.5rem; }
h3 { font-size: 1.1rem; margin-top: 1.8rem; } h4 { font-size: 1rem; margin: 0 0 .3rem; }
.banner { padding: .7rem 1rem; border-left: .5rem solid; font-size: 1.1rem; }
.pass { background: #e4f3e6; } .fail { background: #fbe3e1; font-weight: bold; } .untested { background: #fdf3d7; }
.refused { background: #eef0f2; color: #4a4f55; } .banner { font-weight: normal; }
.banner.pass { border-color: #2b7a3d; } .banner.fail { border-color: #b3261e; }
.banner.untested { border-color: #9a6b00; }
.facts, caption, .word { color: #555; font-size: .85rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin: .8rem 0; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { border: 1px solid #d5d8db; padding: .25rem .5rem; text-align: left; vertical-align: top; }
th { background: #f5f6f7; } td.cell { text-align: center; white-space: nowrap; }
article { border: 1px solid #d5d8db; padding: .8rem 1rem; margin: 1rem 0; break-inside: avoid; }
article p { margin: .3rem 0; overflow-wrap: anywhere; }
pre { background: #f5f6f7; padding: .7rem; overflow-x: auto; font-size: .8rem; }
@page { size: A4 landscape; margin: 12mm; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } pre { white-space: pre-wrap; }
  tr { break-inside: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def tag(name: str, /, *children: Node | str, cls: str = "", **attributes: str) -> Node:
    """Return an element; text is escaped when the tree is written. `http_equiv` is the attribute `http-equiv`."""
    given = {key.replace("_", "-"): legal(value) for key, value in attributes.items()}
    element = Node(name, given | ({"class": cls} if cls else {}))
    for child in children:
        if not isinstance(child, str):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + legal(child)
        else:
            element.text = (element.text or "") + legal(child)
    return element


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Node:
    """Return a table of text with one row of headings."""
    body = [tag("tr", *(tag("td", text) for text in row)) for row in rows]
    return tag("table", tag("thead", tag("tr", *(tag("th", name) for name in columns))), tag("tbody", *body))


def bullets(lines: Iterable[str]) -> Node:
    """Return a list."""
    return tag("ul", *(tag("li", line) for line in lines))
