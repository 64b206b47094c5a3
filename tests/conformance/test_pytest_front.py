"""The suite under pytest: what a plugin's author sees, for every way in which a backend can do."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from attnhub_contracts.conformance import suite_for
from attnhub_contracts.conformance.clauses import CLAUSES
from attnhub_contracts.conformance.outcome import Verdict
from attnhub_contracts.conformance.subject import of_function
from attnhub_contracts.conformance.suite import Suite
from tests.conformance.front_plugins import backend, install

if TYPE_CHECKING:
    from tests.conformance.front_project import Project

pytest_plugins = ["pytester", "tests.conformance.front_project"]

ACME = Path(__file__).parents[1] / "plugins" / "attnhub-acme"


# Verdicts


def test_two_lines_are_the_whole_test_file_of_a_plugin(project: Project) -> None:
    project.install("attnhub-acme", (ACME / "attnhub_acme.py").read_text())
    text = (ACME / "test_acme.py").read_text()
    assert len([line for line in text.splitlines() if line]) == 2
    project.file("test_acme.py", text)
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["test_acme.py *rr*", "numpy_acme (cpu, full): * pass, * refused; worst error 0.* of*"])
    assert set(result.parseoutcomes()) == {"passed"}


def test_a_right_backend_passes_each_case_as_a_test_of_its_own(project: Project) -> None:
    project.install("right", backend("numpy_right"))
    result = project.run_suite("'numpy_right', pattern='causal, T == S ['", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["test_mine.py::TestMine::test_conforms?causal_T_is_S-forward-eager? PASSED *"])
    result.stdout.fnmatch_lines(["numpy_right (cpu, full): 1 pass; worst error 0.* of what is allowed"])


def test_a_wrong_backend_fails_with_detail_clause_and_command(project: Project) -> None:
    project.install("wrong", backend("numpy_wrong", "out = out + (request.sinks is not None)"))
    result = project.run_suite("'numpy_wrong', pattern='sinks of bfloat16 ['")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "numpy_wrong (cpu, full), sinks of bfloat16 [[]forward, eager]: wrong",
            "  out: * of * numbers off, worst at *: * for *",
            "  C2, dtypes: the result has query's*",
            "  C9, sinks: added to the softmax denominator only*",
            '  Again: attnhub check numpy_wrong -k "sinks of bfloat16 [[]forward, eager]"',
            "numpy_wrong (cpu, full): 1 wrong; worst error * of what is allowed",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "suite_class.py" not in result.stdout.str()


def test_an_over_claim_fails(project: Project) -> None:
    refuse = "if request.sinks: raise UnsupportedError('no sinks', feature='sinks')"
    project.install("over", backend("numpy_over", refuse))
    result = project.run_suite("'numpy_over', pattern='sinks of bfloat16 ['")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: error", "  claimed, and raised: UnsupportedError: no sinks"])


UNCLAIMING = """
from attnhub_contracts import Refusal, bind
from attnhub_contracts.conformance.subject import Subject, of_function
from attnhub_contracts.conformance import oracle

def attend(**arguments):
    request, arrays = bind(**arguments)
    {change}
    answer = oracle.forward(request, arrays)
    out = answer.out.astype(arrays.query.dtype)
    return (out, answer.lse.astype("float32")) if request.return_lse else out

def refuse(request):
    return [Refusal("no", "sinks")] if "sinks" in request.needed() else []

mine = Subject("mine", "numpy", of_function("mine", attend, "numpy").serve, refuse)
"""


@pytest.mark.parametrize("strict", [False, True])
def test_an_under_claim_is_listed_and_fails_if_strict(project: Project, strict: bool) -> None:
    before = UNCLAIMING.format(change="")
    result = project.run_suite(f"mine, pattern='sinks, LSE [', strict={strict}", "-v", before=before)
    result.assert_outcomes(passed=int(not strict), failed=int(strict))
    result.stdout.fnmatch_lines(["mine (cpu, full): 1 under-claim; *", "  right without being claimed*: sinks (1)"])
    if strict:
        result.stdout.fnmatch_lines(["*: under-claim", "  right, and not claimed: claim `sinks`, or refuse"])
    else:
        result.stdout.fnmatch_lines(["test_mine.py::TestMine::test_conforms* UNDER-CLAIM *"])


def test_an_argument_dropped_without_a_claim_fails_as_wrong(project: Project) -> None:
    before = UNCLAIMING.format(change="arguments['sinks'] = None; request, arrays = bind(**arguments)")
    result = project.run_suite("mine, pattern='sinks of bfloat16 ['", before=before)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["mine (cpu, full), *: wrong", "  accepted although it refuses sinks, and out: *"])
    assert "Again" not in result.stdout.str()  # no command reaches a subject of a test file


def test_a_refusal_passes_and_shows_as_a_refusal(project: Project) -> None:
    project.install("narrow", backend("numpy_narrow", "raise AssertionError('asked')", lacking="sinks"))
    result = project.run_suite("'numpy_narrow', pattern='sinks of bfloat16 ['", "-v")
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*?sinks_of_bfloat16-forward-eager? REFUSED *", "numpy_narrow (cpu, full): 1 refused; *"]
    )


def test_a_bad_refusal_fails(project: Project) -> None:
    before = UNCLAIMING.format(change="raise TypeError('sinks?')")
    result = project.run_suite("mine, pattern='sinks of bfloat16 ['", before=before)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: bad refusal", "  not claimed, and refused by something else *: TypeError: sinks?"])


def test_a_crash_fails_its_own_test_alone(project: Project) -> None:
    project.install("crashing", backend("numpy_crashing", "if request.layout == 'BNTH': os._exit(7)"))
    result = project.run_suite("'numpy_crashing'", "-k", "conforms[heads_first- or conforms[scale_of_zero-")
    result.assert_outcomes(failed=1, passed=1, deselected=result.parseoutcomes()["deselected"])
    result.stdout.fnmatch_lines(["numpy_crashing (cpu, full), heads first [[]forward, eager]: crash", "*exit code 7*"])
    result.stdout.fnmatch_lines(["numpy_crashing (cpu, full): 1 pass, 1 crash; *"])


def test_in_process_runs_where_pytest_does(project: Project) -> None:
    project.install("telling", backend("numpy_telling", "raise RuntimeError(f'in {os.getpid()}.')"))
    here = f"*RuntimeError: in {os.getpid()}."
    project.run_suite("'numpy_telling', pattern='scale of zero ['").stdout.no_fnmatch_line(here)
    project.run_suite("'numpy_telling', pattern='scale of zero [', in_process=True").stdout.fnmatch_lines([here])
    named = project.run("--attnhub-backend=numpy_telling", "--attnhub-in-process", "-k", "scale_of_zero-")
    named.stdout.fnmatch_lines([here])


@pytest.mark.parametrize(
    ("probe", "platform", "reason"),
    [
        ("return Refusal('jax sees cpu x1.')", "tpu", "jax sees cpu x1."),
        ("raise OSError('no driver')", "gpu", "its probe failed: OSError: no driver."),
        ("return None", "gpu", "its probe returned None; a `Device` or a `Refusal` is accepted."),
        ("return Device(platform, 'any')", "gpu", "NumPy's arrays are on the CPU alone."),
        ("return Refusal('no blas')", "cpu", "no blas."),
    ],
)
def test_a_device_that_is_not_here_is_one_failure(project: Project, probe: str, platform: str, reason: str) -> None:
    project.install("far", backend("numpy_far", probe=probe))
    result = project.run_suite(f"'numpy_far', platform={platform!r}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f"numpy_far cannot be tested on platform '{platform}': {reason} Nothing was tested*",
            f"numpy_far ({platform}, full): 1 untested; no number compared",
            f"FAILED test_mine.py::TestMine::test_conforms?no_{platform}?*",
        ]
    )


@pytest.mark.parametrize("options", ["", ", in_process=True"], ids=["child", "in process"])
def test_a_device_that_is_not_here_is_interpreted_where_the_backend_can_be(project: Project, options: str) -> None:
    operations = "{'attend': None, 'attend_interpreted': load}"
    gone = "return Refusal('no chip here')"
    project.install("far", backend("numpy_far", probe=gone, platforms="tpu", operations=operations))
    result = project.run_suite(f"'numpy_far', pattern='scale of zero ['{options}", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["numpy_far (tpu, interpreted, full): 1 pass; worst error 0.* of what is allowed"])


def test_what_is_interpreted_and_wrong_fails_with_the_command_that_interprets_it_again(project: Project) -> None:
    operations = "{'attend': None, 'attend_interpreted': load}"
    gone = "return Refusal('no chip here')"
    wrong = "assert (request.platform, request.device_kind) == ('tpu', ''); out = out + 1"
    project.install("far", backend("numpy_far", wrong, gone, platforms="tpu", operations=operations))
    result = project.run_suite("'numpy_far', pattern='scale of zero ['")
    result.stdout.fnmatch_lines(
        [
            "numpy_far (tpu, interpreted, full), scale of zero [[]forward, eager]: wrong",
            '  Again: attnhub check numpy_far --platform tpu -k "scale of zero [[]forward, eager]"',
        ]
    )


# Waivers

WAIVER = """
    from attnhub_contracts.waivers import Waiver
    waiver = Waiver({cases!r}, "cap by another name", "https://acme.test/7", {expires!r})
    object.__setattr__(backends[0], "waivers", (waiver,))
    return backends
"""


def waiving(kernel: str, cases: str, expires: str = "2999-12-31") -> str:
    code = backend("numpy_waiving", kernel).replace(
        "    return [\n        Backend", "    backends = [\n        Backend"
    )
    return code + WAIVER.format(cases=cases, expires=expires)


def test_a_waived_failure_is_an_expected_one_and_no_pass(project: Project) -> None:
    project.install("waiving", waiving("if request.scale == 0: out = out + 1", "scale of * [forward, eager]"))
    result = project.run_suite("'numpy_waiving', pattern='scale of zero ['")
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(
        ["numpy_waiving (cpu, full): 1 waived; *", "*waived until 2999-12-31: cap by another name*"]
    )


@pytest.mark.parametrize(
    ("kernel", "cases", "expires", "verdict", "reason"),
    [
        (
            "pass",
            "scale of zero*",
            "2999-12-31",
            "1 pass",
            "'scale of zero [[]forward, eager]' is waived by * and passes*",
        ),
        (
            "out = out + 1",
            "scale of zero*",
            "2020-01-31",
            "1 wrong",
            "the waiver of 'scale of zero?' expired on 2020-01-31*",
        ),
        (
            "pass",
            "scales of old*",
            "2999-12-31",
            "1 pass, 1 idle waiver",
            "the waiver of 'scales of old?' matches no case*",
        ),
    ],
)
def test_a_waiver_that_is_not_needed_or_holds_no_more_fails(
    project: Project, kernel: str, cases: str, expires: str, verdict: str, reason: str
) -> None:
    project.install("waiving", waiving(kernel, cases, expires))
    result = project.run_suite("'numpy_waiving', pattern='scale of zero ['")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines([reason, f"numpy_waiving (cpu, full): {verdict}; *"])


# Subjects that are no names


def test_a_function_runs_with_its_framework_named(project: Project) -> None:
    before = UNCLAIMING.format(change="")
    result = project.run_suite("attend, framework='numpy', pattern='scale'", before=before)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["attend (cpu, full): * pass; *"])


def test_a_function_of_another_convention_is_called_by_its_signature() -> None:
    nn = pytest.importorskip("jax.nn")
    suite = suite_for(nn.dot_product_attention, signature="jax", modes=["eager"], pattern="integer scale [f").suite
    assert [suite.run(run).verdict for run in suite.plan()] == ["pass"]


def test_a_signature_implies_the_framework() -> None:
    assert suite_for(print, signature="torch", pattern="plain").suite.subject.framework == "torch"


def test_a_backend_object_runs_and_its_device_is_asked_for(project: Project) -> None:
    project.file("near.py", backend("numpy_near"))
    project.file("far.py", backend("numpy_far", probe="return Refusal('gone')"))
    before = "import near, far\n(near,), (far,) = near.attnhub_backends(), far.attnhub_backends()"
    project.run_suite("near, pattern='scale of zero ['", before=before).assert_outcomes(passed=1)
    result = project.run_suite("far, pattern='scale'", before=before)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["numpy_far cannot be tested on platform 'cpu': gone. *"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'numpy_rihgt'", "No installed backend is called 'numpy_rihgt'. Did you mean 'numpy_right'?"),
        ("'numpy_right', tier='quick'", "`tier` is 'quick'; gate, full, stress are known."),
        ("'numpy_right', modes=['jit']", "`modes` holds 'jit'; for numpy, eager is accepted."),
        (
            "'numpy_right', pattern='snks'",
            "no run of numpy_right has tier 'full', `pattern` 'snks'*an id is like 'plain'.",
        ),
        ("'numpy_right', framework='jax'", "`framework` and `signature` are for functions; 'numpy_right' is none."),
        ("print, signature='jxa'", "`signature` is 'jxa'; *"),
        ("print", "`framework` is None; whose arrays print takes is asked for, *"),
    ],
)
def test_what_cannot_be_run_ends_the_collection_of_its_file(project: Project, arguments: str, message: str) -> None:
    project.install("right", backend("numpy_right"))
    result = project.run_suite(arguments)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"E  *: {message}"])
    assert "suite_class.py" not in result.stdout.str()  # the trace ends at the author's own line


# The suite behind it


def test_every_verdict_but_three_is_complained_of_untested_included() -> None:
    suite = Suite(of_function("mine", print, "numpy"))
    run = suite.plan()[0]
    outcome = suite.run(run)
    silent = {v for v in get_args(Verdict) if not suite.complaint(run, replace(outcome, verdict=v))}
    assert silent == {"pass", "refused", "under-claim"}


def test_a_run_after_closing_starts_a_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "telling", backend("numpy_telling", "raise RuntimeError(f'in {os.getpid()}.')"))
    suite = suite_for("numpy_telling", pattern="scale").suite
    first, second = suite.plan()[:2]
    told = [suite.run(first).detail, suite.run(second).detail]
    suite.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(told[0].split()[-1].strip(".")), 0)
    told.append(suite.run(first).detail)
    suite.close()
    assert told[0] == told[1] != told[2]


def test_each_clause_of_the_contract_has_its_line_under_its_title() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
    titles = dict(re.findall(r"^\*\*(C\d+), ([^.]+)\.\*\*", page, re.MULTILINE))
    assert {number: line.partition(":")[0] for number, line in CLAUSES.items()} == titles
