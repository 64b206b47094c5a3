from __future__ import annotations

from importlib.metadata import version

from examples.documents import installed_packages, plain


def test_installed_packages_are_found_by_name_and_version() -> None:
    found = {document.name: document for document in installed_packages()}
    assert {"numpy", "jax", "torch", "transformers", "pytest"} <= found.keys()
    assert found["numpy"].version == version("numpy")
    assert "array" in found["numpy"].text


def test_each_package_comes_once_sorted_and_with_something_to_say() -> None:
    documents = installed_packages()
    names = [document.name.lower() for document in documents]
    assert names == sorted(set(names))
    assert all(document.summary and "\n" not in document.summary and document.text for document in documents)


def test_descriptions_are_of_very_different_lengths() -> None:
    lengths = [len(document.text) for document in installed_packages()]
    assert max(lengths) > 20 * min(lengths)


def test_plain_drops_markup_and_keeps_words() -> None:
    markdown = """<h1 align="center">Kettle</h1>
[![Build](https://example.org/badge.svg)](https://example.org)
<!-- a comment
of two lines -->
Boils *water*, see [the manual](https://example.org/manual) or https://example.org.
-----
[link]: https://example.org
"""
    assert plain(markdown) == "Kettle Boils *water*, see the manual or"


def test_plain_drops_restructured_text_images() -> None:
    text = """Kettle
======
.. image:: https://example.org/badge.svg
    :target: https://example.org
.. |docs| image:: https://example.org/docs.svg
|docs| Boils ``water``.
"""
    assert plain(text) == "Kettle Boils ``water``."
