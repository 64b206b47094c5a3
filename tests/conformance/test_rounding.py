"""What a framework's setting takes from the factors of products is allowed, and nothing more (C17)."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from attnhub_contracts import bind
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.drivers import Answer
from attnhub_contracts.conformance.judge import judge

BFLOAT16 = 2.0**-8
BY_ID = {case.id: case for case in CASES}
IDS = ("plain", "what is common", "everything")


def answer(call, rounded):
    """Answer a call as one pass in bfloat16 would, or rather: as if all its inputs were rounded so."""
    arguments = dict(call.arguments)
    for name in ("query", "key", "value") if rounded else ():
        arguments[name] = arguments[name].astype(ml_dtypes.bfloat16).astype(np.float32)
    request, arrays = bind(**arguments, needs=call.needs)
    found = oracle.forward(request, arrays)
    gradients = oracle.backward(request, arrays, call.d_out, call.d_lse)._asdict()
    narrow = {name: x.astype(call.arguments[name].dtype) for name, x in gradients.items() if x is not None}
    return Answer(found.out.astype(np.float32), found.lse.astype(np.float32), narrow)


@pytest.mark.parametrize("name", IDS)
def test_factors_in_bfloat16_pass_where_the_setting_says_so_and_fail_elsewhere(name):
    case = BY_ID[name]
    call = case.build()
    rounded = answer(call, rounded=True)
    assert judge(case, call, rounded, BFLOAT16).fault == ""
    assert "numbers off" in judge(case, call, rounded).fault
    assert judge(case, call, rounded, 2.0**-16).fault != ""
    assert judge(case, call, answer(call, rounded=False)).fault == ""


def test_highest_precision_is_held_to_all_of_its_digits_whatever_the_setting():
    case = BY_ID["plain"]
    call = case.build()
    highest = replace(call, arguments={**call.arguments, "precision": "highest"})
    assert judge(case, highest, answer(call, rounded=True), BFLOAT16).fault != ""


@pytest.mark.parametrize("name", IDS)
def test_a_wrong_answer_is_wrong_under_every_setting(name):
    case = BY_ID[name]
    call = case.build()
    right = answer(call, rounded=False)
    assert judge(case, call, right._replace(out=right.out[:, ::-1]), BFLOAT16).fault != ""
