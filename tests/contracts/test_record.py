import json
from dataclasses import replace

import pytest

from attnhub_contracts import RecordError
from attnhub_contracts.record import Cell, Finding, Key, Record

CELL = Cell("is_causal", "bfloat16", "backward")
KEY = Key(
    backend="acme_flash",
    distribution="acme-attn",
    contract="1.0",
    suite="5e1f",
    backend_version="0.3",
    source="0a1b",
    libraries={"jax": "0.10.2"},
    platform="tpu",
    device_kind="TPU v5 lite",
    driver="",
    numerics={"jax_default_matmul_precision": "None"},
)
RECORD = Record(KEY, "2026-12-01T00:00:00Z", (Finding(CELL, "pass", "run", 12, 1, worst=0.5),))


def altered(**changes):
    plain = json.loads(RECORD.to_json())
    for path, value in changes.items():
        at = plain
        *folders, name = path.split("__")
        for folder in folders:
            at = at[int(folder[1:]) if folder[1:].isdigit() else folder]
        at[name] = value
    return json.dumps(plain)


def test_a_record_survives_the_round_trip():
    assert Record.from_json(RECORD.to_json()) == RECORD


def test_what_is_not_recorded_is_untested():
    assert RECORD.verdict(CELL) == "pass"
    assert RECORD.verdict(replace(CELL, direction="forward")) == "untested"


@pytest.mark.parametrize("field", [name for name in Key.__dataclass_fields__ if name not in ("libraries", "numerics")])
def test_any_difference_in_the_key_changes_the_digest_and_is_named(field):
    other = replace(KEY, **{field: "other"})
    assert other.digest() != KEY.digest()
    assert KEY.differences(other) == [f"{field} is 'other', the record has {getattr(KEY, field)!r}"]


def test_another_library_version_is_named():
    other = replace(KEY, libraries={"jax": "0.12.0"})
    assert KEY.differences(other) == ["libraries is jax 0.12.0, the record has jax 0.10.2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        (RECORD.to_json()[:-20], "is no JSON"),
        ("[]", "no conformance record"),
        (altered(format=2), "format 2; format 1 is read"),
        (altered(key__source="0a1c"), "altered"),
        (altered(key__platform=3), "platform is 3"),
        (altered(key__libraries=["jax"]), "libraries is ['jax']"),
        (altered(key={"backend": "acme_flash"}), "incomplete"),
        (altered(findings=None), "incomplete"),
        (altered(created=None), "created is None"),
        (altered(findings__i0__verdict="passed"), "verdict 'passed' is not known"),
        (altered(findings__i0__evidence="seen"), "evidence 'seen' is not known"),
        (altered(findings__i0__cell__feature="dropout"), "feature 'dropout' is not known"),
        (altered(findings__i0__cell__dtype="int8"), "dtype 'int8' is not known"),
        (altered(findings__i0__executed=-1), "executed is -1"),
        (altered(findings__i0__executed=0), "without one executed case"),
        (altered(findings__i0__worst="small"), "worst is 'small'"),
    ],
)
def test_a_record_that_cannot_be_trusted_is_refused_with_the_reason(text, message):
    with pytest.raises(RecordError) as caught:
        Record.from_json(text)
    assert message in str(caught.value)
