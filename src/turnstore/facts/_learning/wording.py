"""How facts and turns are put into words for a model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

from turnstore import _json
from turnstore.messages import Format, Message

from .._model import Fact

__all__ = ["dated", "fact_line", "said_in", "shortened"]


def dated(moment: datetime, zone: tzinfo) -> str:
    """Give the date of a moment, and the time of day where it is not midnight."""
    there = moment.astimezone(zone)
    return f"{there:%Y-%m-%d}" if _is_midnight(there) else f"{there:%Y-%m-%d %H:%M}"


def fact_line(fact: Fact, zone: tzinfo) -> str:
    """Give what a fact says, what it is about, and when it holds, in one line."""
    since = fact.valid_from.astimezone(zone)
    # Whole days were stated; any other moment is when somebody said it.
    notes = [f"{'since' if _is_midnight(since) else 'heard'} {since:%Y-%m-%d}"]
    if fact.slot:
        notes.insert(0, f"slot: {fact.slot}")
    if fact.valid_to is not None:
        notes.append(f"until {dated(fact.valid_to, zone)}")
    return f"{' '.join(fact.text.split())} ({'; '.join(notes)})"


def said_in(messages: list[Message], rules: Format) -> Iterator[tuple[str, str]]:
    """Give what user and assistant said in messages, without instructions and tool traffic.

    Half letters, which JSON can say and UTF-8 cannot, are replaced: models, embedders and facts
    take none.

    Yields:
        "user" or "assistant", and the text.
    """
    for message in messages:
        if rules.is_instruction(message) or rules.results(message) or message.get("role") == "tool":
            continue
        text = _json.in_utf8(rules.text(message)).strip()
        if text:
            yield ("assistant" if rules.is_reply(message) else "user"), text


def shortened(text: str, most: int) -> str:
    """Leave out the middle of a text that is longer."""
    return text if len(text) <= most else f"{text[: most // 2]} […] {text[-(most // 2) :]}"


def _is_midnight(moment: datetime) -> bool:
    return moment.timetz().replace(tzinfo=None) == datetime.min.time()
