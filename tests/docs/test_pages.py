"""Every Python block in the README and in docs/ runs, and every link leads somewhere."""

from __future__ import annotations

import re
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from sybil import Document
from sybil.parsers.markdown import CodeBlockParser

from tests.docs.running import Examples, check_block, pages

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = pages(ROOT)
MARKS = {"clients": [pytest.mark.integrations], "web": [pytest.mark.web]}  # by folder

_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def _document(page: Path) -> Document:
    never = CodeBlockParser(language="python", evaluator=lambda _: None)
    return Document.parse(str(page), never)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _pages_with_code() -> Iterator[Any]:
    for page in PAGES:
        # `make test-railtracks` has an environment of its own.
        is_elsewhere = page.stem == "railtracks" and not find_spec("railtracks")
        if "```python" in page.read_text() and not is_elsewhere:
            yield pytest.param(page, marks=MARKS.get(page.parent.name, ()), id=_name(page))


# Google's SDK takes aiohttp, where that is installed, and derives from what warns of it.
@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
@pytest.mark.parametrize("page", list(_pages_with_code()))
def test_its_code_runs(
    page: Path, redis_url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("model_server")
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setattr(sys, "argv", ["chat.py", "What is my name?"])
    monkeypatch.setattr(signal, "pause", _ctrl_c)
    addresses = {"redis://localhost:6379": redis_url}
    if page.name == "cluster-and-sentinel.md":
        addresses["redis://localhost:7000"] = request.getfixturevalue("cluster_url")
        sentinel = ("127.0.0.1", request.getfixturevalue("sentinel_port"))
        addresses['("localhost", 26379)'] = repr(sentinel)
    module = ModuleType("__main__")
    if page.name == "django.md":
        module = request.getfixturevalue("django_urls")
    with Examples(vars(module)) as examples:
        for example in _document(page).examples():
            check_block(examples, example, addresses)


def _ctrl_c() -> None:
    raise KeyboardInterrupt


def test_each_block_of_the_readme_is_a_program(
    redis_url: str, request: pytest.FixtureRequest
) -> None:
    """Pasted into a file, without those before it; they go on with the same conversations."""
    request.getfixturevalue("model_server")
    examples = list(_document(ROOT / "README.md").examples())
    assert len(examples) > 2
    for example in examples:
        compile(str(example.parsed), example.path, "exec")  # nothing awaits at the top
        with Examples(vars(ModuleType("__main__"))) as alone:
            check_block(alone, example, {"redis://localhost:6379": redis_url})


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_its_links_lead_somewhere(page: Path) -> None:
    dead = []
    for link, source in _LINK.findall(_CODE.sub("", page.read_text())):
        target, _, anchor = (link or source).partition("#")
        if target.startswith(("https:", "http:", "mailto:")):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            dead.append(link or source)
    assert dead == []


def _anchors(page: Path) -> set[str]:
    """The anchors that a code host makes of headings."""
    headings = _HEADING.findall(_CODE.sub("", page.read_text()))
    kept = (re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}
