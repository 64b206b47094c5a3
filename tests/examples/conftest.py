from __future__ import annotations

import pytest

from examples import minilm_jax, minilm_torch
from examples.comparison import Search, search
from examples.minilm import Batch, make_batches
from tests.examples.texts import QUERY, TEXTS


@pytest.fixture(scope="session")
def batches() -> list[Batch]:
    return make_batches(TEXTS, batch_size=8)


@pytest.fixture(scope="session")
def jax_model() -> minilm_jax.MiniLM:
    return minilm_jax.MiniLM()


@pytest.fixture(scope="session")
def torch_model() -> minilm_torch.MiniLM:
    return minilm_torch.MiniLM()


@pytest.fixture(scope="session")
def eager(batches: list[Batch]) -> Search:
    return search("eager", minilm_torch.MiniLM("eager"), batches, QUERY, lambda _: None)


@pytest.fixture(scope="session", params=["jax", "torch"])
def served(request: pytest.FixtureRequest, batches: list[Batch]) -> Search:
    model = request.getfixturevalue(f"{request.param}_model")
    return search(request.param, model, batches, QUERY, lambda _: None)
