"""The fixtures are those of the tests of extractions."""

from __future__ import annotations

from tests.facts.meaning.conftest import kit, new_kit

__all__ = ["kit", "new_kit"]
