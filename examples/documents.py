"""The documents to search: what every installed Python package says about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from textwrap import shorten
from typing import NamedTuple

#: What a reader does not read: patterns, and what to leave in their place.
_MARKUP = [
    (re.compile(r"<!--.*?-->|<[^<>]+>", re.DOTALL), " "),  # HTML
    (re.compile(r"!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])"), " "),  # Markdown images, badges among them
    (re.compile(r"^\s*\[[^\]]+\]:.*$", re.MULTILINE), " "),  # Markdown link targets
    (re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])"), r"\1"),  # Markdown links
    (re.compile(r"^ *\.\. (\|.*\| )?(image::|_).*(\n +\S.*)*", re.MULTILINE), " "),  # reST images and link targets
    (re.compile(r"\|[\w-]+\|_*"), " "),  # reST names for those
    (re.compile(r"https?://\S+"), " "),
    (re.compile(r"([-=~^*#`+_|])\1{2,}"), " "),  # rulers and fences
    (re.compile(r"\s+"), " "),
]


class Document(NamedTuple):
    """One installed package."""

    name: str
    version: str
    #: One line: its own, or the beginning of its description.
    summary: str
    #: Summary and description, as plain as a few regular expressions make it.
    text: str


def installed_packages() -> list[Document]:
    """Return a document for every package installed in this environment that says something, sorted by name."""
    found: dict[str, Document] = {}
    for document in _read_all():
        found.setdefault(document.name.lower(), document)  # the first is the one that Python imports
    return [found[name] for name in sorted(found)]


def plain(text: str) -> str:
    """Return text without badges, tags, addresses and rulers."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


def _read_all() -> Iterator[Document]:
    for distribution in distributions():
        document = _read(distribution)
        if document.name and document.text:
            yield document


def _read(distribution: Distribution) -> Document:
    fields = distribution.metadata.json
    name, version = str(fields.get("name", "")), str(fields.get("version", ""))
    summary = " ".join(str(fields.get("summary", "")).split())
    description = plain(str(fields.get("description", "")))
    return Document(name, version, summary or shorten(description, 80), f"{summary} {description}".strip())
