"""What a static band can reach."""

import pytest

from attnhub_backends.torch_sdpa.span import Span, binds, is_triangle, key_span, reaches_every_row
from attnhub_contracts import ArraySpec, bind


def span_of(t, s, **band):
    query, key = ArraySpec((1, t, 1, 4), framework="torch"), ArraySpec((1, s, 1, 4), framework="torch")
    return key_span(bind(query, key, key, **band).request)


@pytest.mark.parametrize(
    ("t", "s", "band", "expected"),
    [
        (5, 7, {}, Span(0, 7)),
        (5, 5, {"is_causal": True}, Span(0, 5, None, 0)),
        (5, 7, {"is_causal": True, "query_offset": 0}, Span(0, 5, None, 0)),
        (5, 7, {"is_causal": True, "query_offset": "end"}, Span(0, 7, None, 2)),
        (1, 7, {"is_causal": True, "query_offset": "end"}, Span(0, 7)),
        (1, 7, {"is_causal": True, "query_offset": "end", "local_window_size": (3, 0)}, Span(3, 7)),
        (2, 7, {"is_causal": True, "query_offset": "end", "local_window_size": (3, 0)}, Span(2, 7, 0, 3)),
        (5, 7, {"local_window_size": 10**30, "query_offset": 0}, Span(0, 7)),
        (5, 5, {"is_causal": True, "query_offset": 10**30}, Span(0, 5)),
    ],
)
def test_keys_out_of_reach_are_cut_off_and_idle_bounds_dropped(t, s, band, expected):
    assert span_of(t, s, **band) == expected


@pytest.mark.parametrize("offset", [-5, -(10**30)])
def test_a_band_before_the_first_key_reaches_nothing(offset):
    span = span_of(5, 5, is_causal=True, query_offset=offset)
    assert span.stop <= span.start


def test_the_triangle_is_told_from_other_bands():
    assert is_triangle(Span(0, 5, None, 0))
    assert not is_triangle(Span(0, 5, -1, 0))
    assert not is_triangle(Span(0, 5, None, 1))
    assert not binds(Span(0, 5))


def test_rows_that_the_band_leaves_without_a_key_are_known():
    assert reaches_every_row(Span(0, 5, None, 0), 5)
    assert not reaches_every_row(Span(0, 5, None, -1), 5)
    assert reaches_every_row(Span(0, 5, -1, None), 6)
    assert not reaches_every_row(Span(0, 5, 0, None), 6)
