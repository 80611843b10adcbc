"""The guides about facts hold on each server that facts are promised on, whatever its engine."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import redis
from sybil import Document
from sybil.parsers.markdown import CodeBlockParser

from tests.docs.running import Examples, check_block
from tests.docs.test_pages import ROOT
from tests.servers import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.found import Found

SHOWN = ["facts", "health"]  # whose engine a page prints
PAGES = ["facts", "recall", "extraction", "memory-tools", "privacy"]


def _servers() -> list[Found]:
    alone = [one for one in found.servers() if one.binary]
    return [*alone, *found.with_search()]


@pytest.fixture(scope="module", params=_servers(), ids=lambda one: one.name)
def running(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Give the URL of a server that is nobody else's, and the engine that facts take there."""
    server = request.param.start()
    host, port = server.addresses[0]
    yield f"redis://{host}:{port}", request.param.engines[-1]
    server.close()


@pytest.mark.usefixtures("model_server")
@pytest.mark.parametrize("page", PAGES)
def test_its_code_runs(page: str, running: tuple[str, str]) -> None:
    url, engine = running
    with redis.Redis.from_url(url) as client:
        client.flushall()
    path = ROOT / "docs" / "guides" / f"{page}.md"
    never = CodeBlockParser(language="python", evaluator=lambda _: None)
    written: dict[str, Any] = {
        "redis://localhost:6379": url,
        # Pages say it where their readers may have any server.
        ', engine="plain"': "",
        **{f"{one}.engine": f"{one}.engine.replace({engine!r}, 'plain')" for one in SHOWN},
    }
    with Examples(vars(ModuleType("__main__"))) as examples:
        for example in Document.parse(str(path), never).examples():
            check_block(examples, example, written)
