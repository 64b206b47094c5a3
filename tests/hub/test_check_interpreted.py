"""A backend whose device is not here is interpreted, and nothing that is printed or kept takes that for a run."""

import json
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import attnhub
from attnhub import certificates, environment, evidence, records, registry
from attnhub.checking import find_subject
from attnhub.cli import app
from attnhub_contracts import ArgumentError, Device, UnknownBackendError
from attnhub_contracts.record import INTERPRETER, PLAIN, Cell, Finding, Record
from tests.hub.kernels import KERNEL

RUN = ("-k", "only is_causal [forward, eager]")
STAND_IN = jax.ShapeDtypeStruct((1, 3, 2, 4), "float32")

pytestmark = pytest.mark.skipif(jax.default_backend() == "tpu", reason="the TPU is here")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNHUB_RECORDS", str(tmp_path / "records"))
    return tmp_path / "records"


@pytest.fixture
def plugin(install):
    return lambda *backends: install("acme", f"return [{', '.join(backends)}]", top=KERNEL)


@pytest.fixture
def check():
    return lambda *arguments: CliRunner().invoke(app, ["check", *map(str, arguments)])


@pytest.mark.parametrize("framework", ["numpy", "jax"])
@pytest.mark.parametrize("where", [["--in-process"], ["--jobs", "1"]], ids=["here", "in a child"])
def test_it_is_said_in_every_report(check, plugin, tmp_path, framework, where):
    plugin(f"small('acme_chip', '{framework}', interpreted=True)")
    names = [tmp_path / name for name in ("a.json", "a.xml", "a.html")]
    result = check("acme_chip", *RUN, *where, "--json", names[0], "--junit", names[1], "--html", names[2])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("acme_chip passes, interpreted (no TPU here): 1 right, ")
    assert "evidence: interpreted (no TPU here)" in result.output
    (subject,) = json.loads(names[0].read_text())["subjects"]
    assert (subject["platform"], subject["evidence"], subject["device"]) == ("tpu", "interpreted", INTERPRETER)
    assert {cell["evidence"] for cell in subject["cells"]} == {"interpreted"}
    (told,) = ElementTree.parse(names[1]).findall(".//property[@name='evidence']")
    assert told.get("value") == "interpreted (no TPU here)"
    page = names[2].read_text()
    assert "What is right, interpreted (no TPU here)" in page
    assert "run on" not in page
    assert "certified" not in page.lower()


def test_what_runs_here_is_said_to_be_run(check, tmp_path):
    result = check("numpy_reference", *RUN, "--in-process", "--html", tmp_path / "a.html")
    assert result.output.startswith("numpy_reference passes, run on cpu: 1 right, ")
    assert "interpreted" not in result.output + (tmp_path / "a.html").read_text()


def test_a_device_that_is_here_is_run_on(plugin):
    plugin("small('acme_chip', interpreted=True, probe=lambda p: Device(p, 'TPU v4'), attend=lambda: not_here)")
    subject = find_subject("acme_chip")
    assert (subject.platform, subject.evidence, subject.runs_on) == ("tpu", "run", "tpu")


def test_a_wrong_kernel_fails_and_its_script_interprets_it_too(check, plugin):
    plugin("small('acme_chip', fault='everything', interpreted=True)")
    result = check("acme_chip", *RUN, "--in-process")
    assert result.exit_code == 1
    assert result.output.startswith("acme_chip fails, interpreted (no TPU here): 0 right, ")
    assert "find_subject('acme_chip', platform='tpu')" in result.output


def test_without_an_interpreted_form_there_is_nothing_to_check(plugin):
    plugin("small('acme_chip', platforms=('tpu',), probe=gone)")
    with pytest.raises(UnknownBackendError, match=r"'acme_chip' cannot be checked here: no acme tpu found\."):
        find_subject("acme_chip")


def test_nor_where_its_library_is_broken(plugin):
    plugin("small('acme_chip', interpreted=True, probe=lambda platform: Refusal('broken: it moved', 'broken'))")
    with pytest.raises(UnknownBackendError, match="broken: it moved"):
        find_subject("acme_chip")


def test_a_backend_is_checked_on_the_best_platform_that_it_has_here(plugin):
    plugin(
        "small('acme_both', platforms=('cpu', 'gpu'), probe=lambda p: Device(p, 'test'))",
        "small('acme_cpu', platforms=('cpu', 'gpu'), probe=lambda p: Device(p, 'test') if p == 'cpu' else gone(p))",
        "small('acme_chip', interpreted=True, platforms=('cpu', 'tpu'),"
        " probe=lambda p: Device(p, 'test') if p == 'cpu' else gone(p))",
    )
    assert find_subject("acme_both").platform == "gpu"
    assert find_subject("acme_cpu").platform == "cpu"
    assert (find_subject("acme_chip").platform, find_subject("acme_chip").evidence) == ("cpu", "run")
    chip = find_subject("acme_chip", platform="tpu")
    assert (chip.platform, chip.evidence, chip.runs_on) == ("tpu", "interpreted", "cpu")


def test_a_platform_may_be_asked_for(check):
    result = check("jax_xla", *RUN, "--platform", "cpu", "--in-process")
    assert result.output.startswith("jax_xla passes, run on cpu: ")
    with pytest.raises(UnknownBackendError, match=r"'jax_xla' cannot be checked on platform 'tpu': no TPU found"):
        find_subject("jax_xla", platform="tpu")
    with pytest.raises(ArgumentError, match=r"`--platform` does not know 'gpuu'\. Did you mean 'gpu'"):
        find_subject("jax_xla", platform="gpuu")
    with pytest.raises(ArgumentError, match="functions run on the CPU"):
        find_subject("attnhub_contracts.conformance.oracle:attend", "numpy", platform="tpu")


def test_a_child_of_a_check_on_the_cpu_opens_no_other_device(check, install):
    code = "import os\ndef load():\n    raise RuntimeError('sees ' + os.environ.get('JAX_PLATFORMS', 'all'))\n"
    install("acme", f"{code}return [make('acme_jax', framework='jax', attend=load)]")
    result = check("acme_jax", *RUN, "--jobs", "1")
    assert "RuntimeError: sees cpu" in result.output


def test_its_record_is_kept_apart_from_those_of_devices(check, plugin):
    plugin("small('acme_chip', interpreted=True)")
    assert check("acme_chip", "--in-process").exit_code == 0
    (stored,) = records.stored()
    assert (stored.record.key.platform, stored.record.key.device_kind) == ("tpu", INTERPRETER)
    assert {finding.evidence for finding in stored.record.findings} == {"interpreted"}
    assert "instruction sets" in stored.record.key.driver
    (certificate,) = certificates.certificates()
    assert (certificate.status, certificate.evidence) == ("holds", "interpreted")
    shown = CliRunner().invoke(app, ["records", "show", "acme_chip"]).output
    assert f"interpreted ({INTERPRETER})" in " ".join(shown.split())
    device = environment.key_of(registration("acme_chip"), Device("tpu", "TPU v4"))
    assert records.find(device) == ((), ())


def registration(name):
    return next(r for r in registry.backends() if r.name == name)


def keep(verdict, how):
    """Record what an interpreter made of the plain call."""
    key = evidence.interpreted_key(registration("acme_chip"), "tpu")
    finding = Finding(Cell(PLAIN, "float32", "forward"), verdict, how, 1, 0, failed_case="a case")
    records.save(Record(key, "2026-11-30T00:00:00Z", (finding,), "full"))


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("pass", "; interpreted: passed (full tier, 2026-11-30T00:00:00Z)"),
        ("fail", "; interpreted: wrong here: the plain call in float32, forward fails 'a case' (full tier, 2026-11-30"),
    ],
)
def test_explain_mentions_it_and_it_certifies_nothing(plugin, monkeypatch, verdict, said):
    plugin(
        "small('acme_chip', 'jax', interpreted=True, target=lambda kind: Device('tpu', kind),"
        " attend=lambda: lambda request: not_here)"
    )
    keep(verdict, "interpreted")
    monkeypatch.setenv("ATTNHUB_VERIFY", "gate")
    asked = {"device_kind": "v5e", "relax": {"nan_propagation"}}
    explanation = attnhub.explain(STAND_IN, STAND_IN, STAND_IN, **asked)
    assert explanation.chosen.name == "acme_chip"
    assert explanation.chosen.standing.verdict == "untested"
    assert said in str(explanation)
    with pytest.raises(attnhub.NonConformantError):
        raise attnhub.explain(STAND_IN, STAND_IN, STAND_IN, verify="require", backend="acme_chip", **asked).error


def test_what_was_run_elsewhere_is_not_mentioned_as_interpreted(plugin, monkeypatch):
    plugin(
        "small('acme_chip', 'jax', interpreted=True, target=lambda kind: Device('tpu', kind),"
        " attend=lambda: lambda request: not_here)"
    )
    keep("pass", "run")
    monkeypatch.setenv("ATTNHUB_VERIFY", "gate")
    text = str(attnhub.explain(STAND_IN, STAND_IN, STAND_IN, device_kind="v5e", relax={"nan_propagation"}))
    assert "nothing was run" in text
    assert "interpreted" not in text


def test_the_interpreted_form_never_serves_a_call(plugin):
    plugin("small('acme_chip', interpreted=True)")
    x = np.ones((1, 3, 2, 4), np.float32)
    with pytest.raises(attnhub.DeviceError, match="is not here"):
        attnhub.get("tpu", backend="acme_chip")(x, x, x)
    error = attnhub.explain(x.shape, x.shape, x.shape, backend="acme_chip", framework="numpy").error
    assert isinstance(error, attnhub.DeviceError)
    assert "no acme tpu found" in str(error)
