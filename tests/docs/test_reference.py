from __future__ import annotations

import re
from pathlib import Path

import turnstore
from tests.checks import reference
from tests.docs.running import pages

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
