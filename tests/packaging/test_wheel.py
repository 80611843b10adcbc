"""The wheel, built from the sdist as an installer would do: what is in it, and that it runs."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("lua/**/*.lua")}
MODULES = {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/**/*.py")}


def build(source: Path, kind: str, target: Path) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}"]
    subprocess.run([*command, "--outdir", target, source], check=True, capture_output=True)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_there_are_scripts_to_ship() -> None:
    assert "lua/append.lua" in SCRIPTS


def test_the_sdist_has_every_script(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in names if name.endswith(".lua")} == SCRIPTS
    assert "LICENSE" in names


def test_the_wheel_has_every_script(content: set[str]) -> None:
    shipped = {name.removeprefix("turnstore/") for name in content if name.endswith(".lua")}
    assert shipped == SCRIPTS


def test_the_wheel_has_every_module_and_its_types(content: set[str]) -> None:
    assert {name for name in content if name.endswith(".py")} == MODULES
    assert "turnstore/py.typed" in content


def test_the_wheel_has_nothing_else(content: set[str]) -> None:
    assert {name.split("/")[0].partition("-")[0] for name in content} == {"turnstore"}


def test_the_installed_wheel_finds_its_scripts(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*pip, tmp_path, wheel], check=True)
    code = (
        "import turnstore; from turnstore import Store, _scripts; print(turnstore.__file__);"
        "print(*[name for name in _scripts.names() if _scripts.load(name)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    file, names = done.stdout.splitlines()
    assert Path(file).is_relative_to(tmp_path), "not the one that was installed"
    assert "append" in names.split()
