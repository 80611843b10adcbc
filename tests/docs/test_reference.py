from __future__ import annotations

import turnstore
from tests.checks import reference


def test_the_reference_says_what_the_source_says() -> None:
    names = [page.name for page in reference.outdated()]
    assert names == [], "python tests/checks/reference.py --write"


def test_every_public_class_is_in_it() -> None:
    page = reference.api() + reference.error_page()
    twins = {name for name in turnstore.__all__ if name.startswith("Async")}
    aliases = {"Input", "Message"}
    missing = [
        name for name in set(turnstore.__all__) - twins - aliases if f"## {name}\n" not in page
    ]
    assert missing == []
