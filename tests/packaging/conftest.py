from pathlib import Path

import pytest

from tests.packaging.environments import PLUGINS, ROOT, Environment, build


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with attnhub's sdist, and the wheel that was built out of this sdist."""
    folder = tmp_path_factory.mktemp("distributions")
    build(ROOT, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    return next(distributions.glob("*.whl"))


@pytest.fixture(scope="session")
def with_plugins(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with attnhub, a plugin that works and two that do not, and neither JAX nor PyTorch."""
    wheels = tmp_path_factory.mktemp("plugins")
    for plugin in sorted(PLUGINS.iterdir()):
        build(plugin, wheels, "--wheel")
    environment = Environment.create(tmp_path_factory.mktemp("with-plugins") / "env")
    environment.install(wheel, *wheels.glob("*.whl"))
    return environment
