"""Rolling summaries: what falls out of the window is folded into a text that is carried on.

The summary is stored beside the turns with the element up to which it goes. Folding takes
the earlier summary and the turns after it, asks the caller's model for a new one, and
replaces the old one if nobody else did so meanwhile. Turns are never touched.
"""

from __future__ import annotations

import inspect
import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from turnstore import _history, _json
from turnstore._calls import Ask, Call, Flow
from turnstore._element import Element
from turnstore._keys import Keys
from turnstore.errors import TurnstoreError
from turnstore.messages import format_named
from turnstore.window import limit

from ._common import failed

__all__ = ["DEFAULT_TEMPLATE", "Carried", "Summary", "carried", "fold", "is_due"]

log = logging.getLogger("turnstore")

DEFAULT_TEMPLATE = """\
You keep the memory of a conversation. Write its summary anew, so that it can go on without
the messages below.

Keep: what the user asked for and what is still open; topics; decisions and their reasons;
names, numbers, dates and places that matter; the user's preferences. Drop: greetings and
filler, code (say what it was for), anything that was corrected later. Where the messages
contradict the earlier summary, the messages are right. Write plain sentences in the language
of the conversation, at most 300 words, and nothing else.

Earlier summary:
{summary}

Messages since:
{transcript}
"""

DEFAULT_HEADING = "Summary of the conversation before the messages that follow:"

_PLACEHOLDER = re.compile(r"\{(summary|transcript)\}")
_FOLDED_AT_ONCE = 50  # turns: more would be beyond what models take
_LEASE_MARGIN_MS = 5_000


@dataclass(frozen=True, slots=True)
class Summary:
    """Fold what falls out of the window into a summary, and send that ahead of the window.

    Args:
        ask: The model: a function from a prompt to text, or a client of the OpenAI SDK
            together with `model`. It may be async on an async store.
        model: The name of the model, where `ask` is a client.
        template: The prompt; `{summary}` and `{transcript}` are put in.
        heading: What stands above the summary where it is sent.
        after_turns: Fold when at least so many turns stand between the summary and the
            window. With 1, nothing is ever missing from what is sent. None leaves it to
            `after_tokens`.
        after_tokens: Fold when these turns hold at least so many tokens.
        when: "before" the model is called, so that the fresh summary is sent; "after" the
            turn was saved, so that the answer does not wait for it; "manual", by
            `conversation.summarize` alone.
        deadline: Seconds that the model may take.

    Raises:
        TypeError, ValueError: An argument is of no use.

    A model that fails, answers nothing or is too late changes nothing: it is logged and
    counted, and the turn goes on with what there was. Give the window a `step`: it then
    moves once in a while, and so does the summary. Without one, each turn folds.

    Example:
        >>> Summary(lambda prompt: "They talked about boats.", after_turns=5).when
        'before'
    """

    ask: Any
    model: str | None = None
    template: str = DEFAULT_TEMPLATE
    heading: str = DEFAULT_HEADING
    after_turns: int | None = 1
    after_tokens: int | None = None
    when: Literal["before", "after", "manual"] = "before"
    deadline: float = 60.0

    def __post_init__(self) -> None:
        if not hasattr(self.ask, "chat") and not callable(self.ask):
            msg = f"Summary asks a function or a client, not {type(self.ask).__name__}"
            raise TypeError(msg)
        if hasattr(self.ask, "chat") and not self.model:
            msg = 'Summary(client) needs the name of the model too, as in model="gpt-x"'
            raise TypeError(msg)
        if "{transcript}" not in self.template or "{summary}" not in self.template:
            msg = "the template of a summary has the places {summary} and {transcript}"
            raise ValueError(msg)
        limit("Summary(after_turns={})", self.after_turns)
        limit("Summary(after_tokens={})", self.after_tokens)
        if self.when not in ("before", "after", "manual"):
            msg = f"when is 'before', 'after' or 'manual', not {self.when!r}"
            raise ValueError(msg)
        if not self.deadline > 0:
            msg = f"deadline {self.deadline!r}: some seconds, above 0"
            raise ValueError(msg)

    def carried(self, known: Carried) -> str:
        """Give the text that is sent; empty where nothing is known."""
        return f"{self.heading}\n{known.text}" if known.text else ""

    def question(self, prompt: str) -> Ask:
        """Make the question to the model."""
        if hasattr(self.ask, "chat"):
            create = self.ask.chat.completions.create
            return Ask(_complete, (create, self.model, prompt), self.deadline)
        return Ask(self.ask, (prompt,), self.deadline)


class Carried(NamedTuple):
    """A summary as it is stored.

    Attributes:
        format_number: Of this layout: 1.
        no: The ordinal of the last element that it covers.
        turn: The number of that element's turn.
        tokens: The running total of tokens there.
        text: The summary.
    """

    format_number: int
    no: int
    turn: int
    tokens: int
    text: str


NOTHING = Carried(1, 0, 0, 0, "")


def carried(keys: Keys, counts: Counter[str]) -> Flow[Carried]:
    """Read the summary; `NOTHING` where there is none, or it cannot be read: one call."""
    try:
        # In small letters for the same reason as the read of the turns.
        call = Call("summary", (keys.summary,), "get", (), writes=False, read=_read)
        stored: Carried = yield call
    except TurnstoreError as error:
        failed(counts, "summary", error, f"the turn of {keys} goes on without it")
        return NOTHING
    return stored


def is_due(summary: Summary, known: Carried, before: int, tokens_before: int) -> bool:
    """Tell whether enough stands between a summary and the first turn of a window."""
    turns = before - 1 - known.turn
    tokens = tokens_before - known.tokens
    return turns > 0 and (
        (summary.after_turns is not None and turns >= summary.after_turns)
        or (summary.after_tokens is not None and tokens >= summary.after_tokens)
    )


def fold(
    keys: Keys, summary: Summary, before: int, counts: Counter[str], *, strict: bool = False
) -> Flow[Carried]:
    """Fold the turns before a turn into the summary: three calls and a question.

    Args:
        keys: Of the conversation.
        summary: How.
        before: The number of the first turn that is not folded.
        counts: Where a failure is counted, as `summary`.
        strict: Whether it is raised.

    Returns:
        The summary that is stored now.
    """
    token = secrets.token_urlsafe(8)
    lease_ms = int(summary.deadline * 1000) + _LEASE_MARGIN_MS
    begin = {"token": token, "lease_ms": lease_ms}
    try:
        begun: _Begun = yield _history.script_call("fold_begin", keys, begin, _read_begun)
    except TurnstoreError as error:
        failed(counts, "summary", error, f"nothing of {keys} is folded")
        if strict:
            raise
        return NOTHING
    granted, known = begun
    if not granted:
        return known
    try:
        while known.turn < before - 1:
            stop = min(before, known.turn + _FOLDED_AT_ONCE + 1)
            turns = stop - 1 - known.turn
            found: _history.Found = yield _history.page_call(keys, stop, turns, "summary")
            elements = found.elements
            if not elements:
                break
            last = elements[-1]
            answer = yield summary.question(_prompt(summary.template, known.text, elements))
            if not isinstance(answer, str) or not answer.strip():
                msg = f"the model answered no text: {answer!r}"
                raise ValueError(msg)  # noqa: TRY301 - handled as the model's other failures are
            new = Carried(1, last.no, last.turn, last.total_tokens, answer.strip())
            codec, data = _json.dumps(list(new))
            values = {
                "token": "",
                "covered": known.no,
                "upto": last.revision,
                "value": codec.encode() + data,
            }
            if not (yield _history.script_call("fold", keys, values, int)):
                break
            known = new
    except Exception as error:
        failed(counts, "summary", error, f"the summary of {keys} stays as it was")
        if strict:
            yield from _give_back(keys, token)
            raise
    yield from _give_back(keys, token)
    return known


def _give_back(keys: Keys, token: str) -> Flow[None]:
    values = {"token": token, "covered": 0, "upto": "", "value": ""}
    try:
        yield _history.script_call("fold", keys, values, int)
    except TurnstoreError as error:
        log.warning("the lease of %s runs out by itself: %s", keys, error)


def _prompt(template: str, summary: str, elements: list[Element]) -> str:
    lines: list[str] = []
    for element in elements:
        rules = format_named(element.format)
        for message in element.messages:
            text = rules.text(message).strip()
            if text and not rules.is_instruction(message):
                who = "assistant" if rules.is_reply(message) else message.get("role", "user")
                lines.append(f"{who}: {text}")
    parts = {"summary": summary or "(none)", "transcript": "\n".join(lines) or "(no text)"}
    return _PLACEHOLDER.sub(lambda place: parts[place[1]], template)


def _complete(create: Callable[..., Any], model: str, prompt: str) -> Any:
    reply = create(model=model, messages=[{"role": "user", "content": prompt}])
    if inspect.isawaitable(reply):
        return _later(reply)
    return reply.choices[0].message.content


async def _later(reply: Any) -> Any:
    return (await reply).choices[0].message.content


def _read(reply: bytes | None) -> Carried:
    try:
        row = _json.loads(reply) if reply else None
        return Carried(*row) if row else NOTHING
    except (TypeError, ValueError) as error:
        # Worth less than the turn: it is folded anew.
        log.warning("a stored summary cannot be read, and is left aside: %s", error)
        return NOTHING


class _Begun(NamedTuple):
    granted: int
    known: Carried


def _read_begun(reply: list[Any]) -> _Begun:
    granted, stored = reply
    return _Begun(granted, _read(stored))
