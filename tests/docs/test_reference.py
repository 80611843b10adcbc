from __future__ import annotations

import re
from pathlib import Path

import turnstore
from tests.checks import reference
from tests.docs.running import pages
from turnstore import context, server, testing

ROOT = Path(__file__).parents[2]


def test_the_reference_says_what_the_source_says() -> None:
    names = [page.name for page in reference.outdated()]
    assert names == [], "python tests/checks/reference.py --write"


def test_the_pages_know_how_many_ids_are_kept() -> None:
    kept = re.search(r"IDS_KEPT = (\d+)", (ROOT / "lua/lib/head.lua").read_text())
    assert kept
    text = "\n".join(page.read_text() for page in pages(ROOT))
    assert set(re.findall(r"newest (\d\d) (?:saves|elements|turns)", text)) == {kept[1]}


def test_every_public_class_is_in_it() -> None:
    page = reference.api() + reference.error_page()
    twins = {name for name in turnstore.__all__ if name.startswith("Async")}
    aliases = {"Input", "Message"}
    missing = [
        name for name in set(turnstore.__all__) - twins - aliases if f"## {name}\n" not in page
    ]
    assert missing == []


def test_what_other_modules_offer_is_in_it() -> None:
    page = reference.api()
    texts = {name for name in context.__all__ if name.isupper()}
    names = {name for module in (context, server, testing) for name in module.__all__} - texts
    names |= {name for _, _, classes in reference.INTEGRATIONS.values() for name in classes}
    assert {name for name in names if f"### {name}\n" not in page} == set()
    assert {text for text in texts if f"`{text}`" not in page} == set()


def test_every_framework_is_in_it() -> None:
    files = (ROOT / "src/turnstore/integrations").glob("[a-z]*.py")
    assert {file.stem for file in files} == reference.INTEGRATIONS.keys()


def test_what_is_for_turnstore_alone_is_not_in_it() -> None:
    page = reference.api()
    for name in reference.INTERNAL:
        owner, member = name.split(".")
        assert hasattr(getattr(turnstore, owner, None) or getattr(context, owner), member)
        assert f"### {name}\n" not in page
