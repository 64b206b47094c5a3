"""Which key each row sees, read off the oracle's output and compared with a picture. x sees, . does not."""

from typing import Any

import numpy as np
import pytest

from attnhub_contracts.conformance.oracle import attend

INT64, UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


def seen(rows: int, keys: int, entries: int = 1, **arguments: Any) -> Any:
    """Return a picture per entry: query 0 gives each visible key the same weight, one-hot values show which."""
    query, key = np.zeros((entries, rows, 1, 1)), np.ones((entries, keys, 1, 1))
    value = np.broadcast_to(np.eye(keys), (entries, keys, keys))[:, :, None, :]
    out = attend(query, key, value, **arguments)[:, :, 0, :]
    pictures = ["/".join("".join(".x"[int(cell > 0)] for cell in row) for row in entry) for entry in out]
    return pictures if entries > 1 else pictures[0]


@pytest.mark.parametrize(
    ("arguments", "picture"),
    [
        ({"is_causal": True, "query_offset": 0}, "x..../xx.../xxx.."),
        ({"is_causal": True, "query_offset": "end"}, "xxx../xxxx./xxxxx"),
        ({"is_causal": True, "query_offset": -2}, "...../...../x...."),
        ({"is_causal": True, "query_offset": 9}, "xxxxx/xxxxx/xxxxx"),
        ({"local_window_size": (1, 0), "query_offset": 0}, "x..../xx.../.xx.."),
        ({"local_window_size": (1, 1), "query_offset": 0}, "xx.../xxx../.xxx."),
        ({"local_window_size": 1, "query_offset": 0}, "xx.../xxx../.xxx."),
        ({"local_window_size": 0, "query_offset": 2}, "..x../...x./....x"),
        ({"local_window_size": (None, 1), "query_offset": 0}, "xx.../xxx../xxxx."),
        ({"local_window_size": (0, None), "query_offset": 1}, ".xxxx/..xxx/...xx"),
        ({"local_window_size": (1, 3), "query_offset": 1, "is_causal": True}, "xx.../.xx../..xx."),
        ({"local_window_size": (None, None)}, "xxxxx/xxxxx/xxxxx"),
        ({"local_window_size": (10**30, 10**30), "query_offset": 0}, "xxxxx/xxxxx/xxxxx"),
    ],
    ids=str,
)
def test_band(arguments: dict[str, Any], picture: str) -> None:
    assert seen(3, 5, **arguments) == picture


def test_more_rows_than_keys_leave_the_first_rows_empty_with_offset_end() -> None:
    assert seen(5, 3, is_causal=True, query_offset="end") == ".../.../x../xx./xxx"


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_offset_per_entry(dtype: Any) -> None:
    assert seen(2, 3, 2, is_causal=True, query_offset=np.array([0, 1], dtype)) == ["x../xx.", "xx./xxx"]


def test_offset_of_rank_0_holds_for_every_entry() -> None:
    assert seen(2, 3, 2, is_causal=True, query_offset=np.array(1)) == ["xx./xxx", "xx./xxx"]


@pytest.mark.parametrize("offset", [10**30, np.array(INT64.max), np.array(UINT64.max), np.array([2**31 - 1], np.int32)])
def test_offset_beyond_every_key_sees_all(offset: Any) -> None:
    assert seen(2, 3, is_causal=True, query_offset=offset) == "xxx/xxx"
    assert seen(2, 3, local_window_size=(1, None), query_offset=offset) == ".../..."


@pytest.mark.parametrize("offset", [-(10**30), np.array(INT64.min), np.array([-(2**31)], np.int32)])
def test_offset_before_every_key_sees_none(offset: Any) -> None:
    assert seen(2, 3, is_causal=True, query_offset=offset) == ".../..."
    assert seen(2, 3, local_window_size=(None, 1), query_offset=offset) == ".../..."


def test_lengths_hide_rows_and_keys_past_them() -> None:
    lengths: Any = {"query_seq_lengths": np.array([2, 1]), "key_value_seq_lengths": np.array([1, 3])}
    assert seen(2, 3, 2, **lengths) == ["x../x..", "xxx/..."]


@pytest.mark.parametrize(
    ("lengths", "picture"),
    [(-1, "..."), (0, "..."), (3, "xxx"), (99, "xxx"), (INT64.min, "..."), (INT64.max, "xxx"), (UINT64.max, "xxx")],
)
def test_lengths_are_clipped(lengths: int, picture: str) -> None:
    assert seen(1, 3, key_value_seq_lengths=np.array([lengths])) == picture


@pytest.mark.parametrize(
    ("queries", "keys", "pictures"),
    [
        # entry 0 ends at key 3 of 4 with row 2 of 3 (offset 1); entry 1 at key 2 with row 3 (offset -1).
        ([2, 3], [3, 2], ["xx../xxx./....", "..../x.../xx.."]),
        (None, [3, 2], ["x.../xx../xxx.", "..../x.../xx.."]),
        ([2, 3], None, ["xxx./xxxx/....", "xx../xxx./xxxx"]),
        ([99, -5], [3, -9], ["x.../xx../xxx.", "..../..../...."]),  # clipped first: 3 - 3, and 0 - 0
    ],
)
def test_offset_end_counts_the_lengths_of_each_entry(
    queries: list[int] | None, keys: list[int] | None, pictures: list[str]
) -> None:
    lengths: Any = {
        "query_seq_lengths": None if queries is None else np.array(queries),
        "key_value_seq_lengths": None if keys is None else np.array(keys),
    }
    assert seen(3, 4, 2, is_causal=True, query_offset="end", **lengths) == pictures


def test_segments_see_their_own_and_negative_ids_nothing() -> None:
    queries, keys = np.array([[0, 7, -1, 5]]), np.array([[7, 0, 7, -1, -2]])
    ids: Any = {"query_segment_ids": queries, "key_value_segment_ids": keys}
    assert seen(4, 5, **ids) == ".x.../x.x../...../....."


def test_segment_ids_of_different_width_compare_by_value() -> None:
    ids: Any = {
        "query_segment_ids": np.array([[UINT64.max, 2**53, 2**53 + 1, 3]], np.uint64),
        "key_value_segment_ids": np.array([[-1, 2**53, 3]], np.int64),
    }
    assert seen(4, 3, **ids) == ".../.x./.../..x"


def test_bias_of_minus_infinity_hides_and_the_lowest_number_does_not() -> None:
    bias = np.array([[[[0, -np.inf, 0]]]])
    assert seen(1, 3, bias=bias) == "x.x"
    lowest = np.full((1, 1, 1, 3), np.finfo(np.float32).min, np.float32)
    assert seen(1, 3, bias=lowest) == "xxx"


def test_conditions_combine_by_and() -> None:
    arguments: Any = {
        "is_causal": True,
        "query_offset": 1,
        "local_window_size": (2, None),
        "mask": np.array([[[[True, True, True, False, True]]]]),
        "key_value_seq_lengths": np.array([4]),
        "query_segment_ids": np.array([[1, 1, 1, 1]]),
        "key_value_segment_ids": np.array([[1, 1, 2, 1, 1]]),
    }
    # causal and window: xx... / xxx.. / .xxx. / ..xxx; the mask takes 3, segments 2, the length 4.
    assert seen(4, 5, **arguments) == "xx.../xx.../.x.../....."


@pytest.mark.parametrize("shape", [(1, 1, 1, 3), (1, 1, 2, 1), (2, 1, 1, 1), (2, 1, 2, 3), (1, 1, 1, 1)])
def test_mask_is_broadcast(shape: tuple[int, ...]) -> None:
    mask = np.random.default_rng(5).random(shape) < 0.5
    full = np.broadcast_to(mask, (2, 1, 2, 3))
    assert seen(2, 3, 2, mask=mask) == seen(2, 3, 2, mask=full)
    assert seen(2, 3, 2, mask=full)[1] == "/".join("".join(".x"[int(cell)] for cell in row) for row in full[1, 0])
