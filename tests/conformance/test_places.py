"""A driver makes its arrays on the platform of the subject."""

from __future__ import annotations

from typing import Any

import jax
import pytest
import torch

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.drivers import jax_driver, torch_driver
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.subject import Subject

PLAIN = next(case for case in CASES if case.id == "plain")


def places(framework: str, platform: str) -> set[str]:
    """Return where the arrays of a call were; the subject answers nothing."""
    seen = set()

    def serve(request: Any, needs: Any) -> Any:
        def attend(arguments: dict[str, Any]) -> Any:
            seen.update(str(getattr(arguments[name], "device", "?")) for name in ("query", "key", "value"))
            raise NotImplementedError

        return attend

    run_case(Subject("under test", framework, serve, platform=platform), Run(PLAIN, "forward", "eager"))
    return seen


def test_torch_arrays_are_made_on_the_platform() -> None:
    assert places("torch", "cpu") == {"cpu"}
    assert places("torch", "meta") == {"meta"}  # a device that every machine has


def test_jax_arrays_are_made_on_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places("jax", "cpu") == {str(jax.devices("cpu")[0])}
    other = jax.devices("cpu")[0]
    asked: list[str] = []
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    monkeypatch.setattr(jax, "devices", lambda platform: asked.append(platform) or [other])
    with jax_driver.on("cpu"):
        assert jax.config.jax_default_device is other
    assert asked == ["cpu"]
    assert jax.config.jax_default_device is None


def test_the_place_is_given_up_after_the_run() -> None:
    with pytest.raises(RuntimeError, match="stop"), torch_driver.on("meta"):
        raise RuntimeError("stop")
    assert torch_driver._array(PLAIN.build().arguments["query"], "eager").device == torch.device("cpu")
