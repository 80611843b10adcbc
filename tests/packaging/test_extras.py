"""What a guide tells the reader to install brings what its code and its adapter import."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.servers.found import lack

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
CLIENTS = ROOT / "docs" / "guides" / "clients"

# The modules of each adapter, where they are not named as their guide.
ADAPTERS = {
    "anthropic": ["clients/anthropic.py"],
    "google": ["clients/google.py", "clients/_google_api.py"],
    "langchain": ["integrations/langchain.py", "integrations/_langchain_history.py"],
    "litellm": ["clients/litellm.py", "clients/_litellm_call.py", "clients/_litellm_folding.py"],
    "pydantic-ai": ["integrations/pydantic_ai.py", "integrations/_pydantic_ai_store.py"],
}
# What a guide's code needs although no statement imports it.
UNSAID = {
    "from agent_framework.openai import": "agent-framework-openai",
    '"openai-chat:': "openai",
    '"openai:': "langchain-openai",
}

_INSTALL = re.compile(r"(?:^|`)pip install ((?:'[^']*'|\"[^\"]*\"|[\w.-]+)(?: (?! )\S+)*)")
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _guides() -> list[str]:
    named = [
        path.stem for path in sorted(CLIENTS.glob("*.md")) if "pip install" in path.read_text()
    ]
    return [name for name in named if name != "railtracks"]  # in an environment of its own


def _told(page: str) -> Iterator[Requirement]:
    """Give what the page tells the reader to install, an extra of ours as what it stands for."""
    for line in _INSTALL.findall(page):
        for word in shlex.split(line.partition("`")[0]):
            if word.startswith("."):
                yield from map(Requirement, PROJECT["dependencies"])
                for extra in word.strip(".[]").split(","):
                    yield from map(Requirement, EXTRAS[extra])
            else:
                yield Requirement(word)


def closure(wanted: list[Requirement]) -> set[str]:
    """Give the distributions that pip would install, from the metadata of those that are here."""
    seen: set[tuple[str, str]] = set()
    while wanted:
        one = wanted.pop()
        for extra in ("", *one.extras):
            if (canonicalize_name(one.name), extra) in seen:
                continue
            seen.add((canonicalize_name(one.name), extra))
            try:
                needed = [Requirement(text) for text in requires(one.name) or ()]
            except PackageNotFoundError:
                lack(f"{one.name} is not installed")
            wanted += [
                more for more in needed if not more.marker or more.marker.evaluate({"extra": extra})
            ]
    return {name for name, _ in seen}


def imports(source: str) -> set[str]:
    """Give the top-level modules of others that a source imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"turnstore"}


@pytest.mark.integrations
@pytest.mark.parametrize("guide", _guides())
def test_a_guide_names_all_that_it_needs(guide: str) -> None:
    page = (CLIENTS / f"{guide}.md").read_text()
    told = list(_told(page))
    assert told, "no line to install from"
    brought = closure(told)
    name = guide.replace("-", "_")
    files = ADAPTERS.get(guide, [f"integrations/{name}.py"])
    used = imports("\n".join(_PYTHON.findall(page)))
    for file in files:
        used |= imports((ROOT / "src" / "turnstore" / file).read_text())
    brings = packages_distributions()
    for module in used:
        by = {canonicalize_name(distribution) for distribution in brings.get(module, ())}
        assert by & brought, f"{module} is of {by or 'nothing here'}"
    for text, distribution in UNSAID.items():
        if text in page:
            assert distribution in brought, f"{text} needs {distribution}"


def test_the_environment_of_adapters_has_each_extra_of_them() -> None:
    apart = {"dev", "test", "test-web", "web", "demo", "facts", "tokens", "railtracks", "openai"}
    held = {Requirement(one).name for one in EXTRAS["integrations"]}
    for name in EXTRAS.keys() - apart:
        assert {Requirement(one).name for one in EXTRAS[name]} <= held, name


@pytest.mark.parametrize("page", ["README.md", *map(str, Path("docs").glob("**/*.md"))])
def test_what_is_not_published_is_installed_from_a_clone(page: str) -> None:
    assert "turnstore[" not in (ROOT / page).read_text()
