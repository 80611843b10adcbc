"""Rolling summaries: what falls out of the window is folded into a text that is carried on.

The summary is stored beside the turns with the element up to which it goes. Folding takes
the earlier summary and the turns after it, asks the caller's model for a new one, and
replaces the old one if nobody else did so meanwhile. Turns are never touched.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from turnstore import _history, _json, _owners
from turnstore._calls import Call, Flow
from turnstore._counting import count
from turnstore._element import Element
from turnstore._keys import Keys
from turnstore.errors import TurnstoreError
from turnstore.messages import format_named
from turnstore.results import History
from turnstore.window import limit

from ._common import (
    MOST_CHARACTERS,
    SUMMARY_HEADING,
    SUMMARY_PROMPT,
    Asking,
    check_deadline,
    check_template,
    failed,
    fill,
    text_of,
    transcript,
)
from ._models import check_model, question
from .tokens import DEFAULT_ENCODING

__all__ = [
    "Carried",
    "Summary",
    "carried",
    "fold",
    "is_due",
    "summary_call",
    "warn_of_uncounted",
]

log = logging.getLogger("turnstore")

_FOLDED_AT_ONCE = 50  # turns: more would be beyond what models take
_LEASE_MARGIN_MS = 5_000
_BYTES_PER_TOKEN = 3  # English has 4, Chinese about as many
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f]|(?<=\S)(?=\n)")


@dataclass(frozen=True, slots=True)
class Summary:
    """Fold what falls out of the window into a summary, and send that ahead of the window.

    Args:
        ask: The model: a function from a prompt to text, or a client of the openai, anthropic
            or google-genai package (`client.aio`, where async) together with `model`. It may be
            async on an async store. A client with a memory is refused: give the one that was
            wrapped.
        model: The name of the model, where `ask` is a client.
        template: The prompt; `{summary}` and `{transcript}` are put in.
        heading: What stands above the summary where it is sent.
        tokens: At most so many tokens of a summary, a token for each 3 bytes. What a model says
            beyond them is cut off at the end of a sentence, logged, and counted as
            `summary_cut`. None takes all.
        after_turns: Fold when at least so many turns stand between the summary and the
            window. With 1, nothing is missing from what is sent, unless the model failed or
            another worker is folding just then. None leaves it to `after_tokens`.
        after_tokens: Fold when these turns hold at least so many tokens. A store without a
            counter counts by `cl100k_base` from the first turn with such a context on; turns
            that were stored before count nothing, with a warning.
        when: "before" the model is called, so that the fresh summary is sent; "after" the
            turn was saved, so that the model does not wait for it (a plain call of a wrapped
            client returns when it is done); "manual", by `conversation.summarize` alone.
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
    template: str = SUMMARY_PROMPT
    heading: str = SUMMARY_HEADING
    tokens: int | None = 2000
    after_turns: int | None = 1
    after_tokens: int | None = None
    when: Literal["before", "after", "manual"] = "before"
    deadline: float = 60.0

    def __post_init__(self) -> None:
        check_model("Summary", self.ask, self.model)
        check_template("the template of a summary", self.template, "summary", "transcript")
        limit("Summary(tokens={})", self.tokens)
        limit("Summary(after_turns={})", self.after_turns)
        limit("Summary(after_tokens={})", self.after_tokens)
        if self.when not in ("before", "after", "manual"):
            msg = f"when is 'before', 'after' or 'manual', not {self.when!r}"
            raise ValueError(msg)
        if self.deadline is None:  # a lease that never ends would stop all folding
            msg = "Summary(deadline=None): the model needs an end, in seconds"
            raise TypeError(msg)
        check_deadline("Summary", self.deadline)

    def carried(self, known: Carried) -> str:
        """Give the text that is sent; empty where nothing is known."""
        return f"{self.heading}\n{known.text}" if known.text else ""

    def question(self, prompt: str) -> Asking[Any]:
        """Ask the model, and give what it says."""
        return question(self.ask, self.model, prompt, self.deadline)


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
_TYPES = (int, int, int, int, str)
_COVERED = re.compile(rb"w?\[1,(\d{1,15}),")  # as in lua/fold.lua


def summary_call(keys: Keys) -> Call:
    """Make the call that reads the summary; `NOTHING` where there is none."""
    # In small letters for the same reason as the read of the turns.
    return Call("summary", (keys.summary,), "get", (), writes=False, read=_read)


def carried(keys: Keys, counts: Counter[str]) -> Flow[Carried]:
    """Read the summary; `NOTHING` where there is none, or it cannot be read: one call."""
    try:
        stored: Carried = yield summary_call(keys)
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


def warn_of_uncounted(history: History) -> None:
    """Say in the log that a limit of tokens knows nothing of turns that are there already."""
    if any(not element.counter for element in history.elements):
        log.warning(
            "Summary(after_tokens=…): turns that were stored before anything counted tokens "
            "count nothing. Give the store count_tokens=%r, so that all are counted",
            DEFAULT_ENCODING,
        )


def fold(  # noqa: PLR0913 - what a folding is made of
    keys: Keys,
    summary: Summary,
    before: int,
    counts: Counter[str],
    *,
    clean: Callable[[str], Flow[str]],
    strict: bool = False,
) -> Flow[Carried]:
    """Fold the turns before a turn into the summary.

    One call, one more with an owner, and for each 50 turns two more and a question.

    Args:
        keys: Of the conversation.
        summary: How.
        before: The number of the first turn that is not folded.
        counts: Where a failure is counted, as `summary`.
        clean: Makes of what the model answers what is stored.
        strict: Whether a failure is raised.

    Returns:
        The summary that is stored now.
    """
    token = secrets.token_urlsafe(8)
    try:
        return (yield from _fold(keys, summary, before, counts, token, clean=clean, strict=strict))
    except BaseException as error:
        # What is cancelled gives its lease back; of a flow that is closed nobody runs the rest.
        if not isinstance(error, Exception | GeneratorExit):
            failed(counts, "summary", error, f"the summary of {keys} stays as it was")
            yield from _give_back(keys, token)
        raise


def _fold(  # noqa: PLR0913 - as for `fold`
    keys: Keys,
    summary: Summary,
    before: int,
    counts: Counter[str],
    token: str,
    *,
    clean: Callable[[str], Flow[str]],
    strict: bool,
) -> Flow[Carried]:
    lease_ms = int(summary.deadline * 1000) + _LEASE_MARGIN_MS
    begin = {"token": token, "lease_ms": lease_ms}
    try:
        began = yield from _owners.begun(keys)
        begun: _Begun = yield _history.script_call(
            "fold_begin", keys, begin, _read_begun, began=began
        )
    except TurnstoreError as error:
        failed(counts, "summary", error, f"nothing of {keys} is folded")
        if strict:
            raise
        return NOTHING
    if not begun.granted:
        return begun.known
    known = begun.known
    is_held = True
    try:
        done = max(known.turn, begun.first_turn - 1)
        while done < before - 1:
            stop = min(before, done + _FOLDED_AT_ONCE + 1)
            step = _Step(token, lease_ms if stop < before else 0, began, clean, counts)
            new = yield from _fold_some(keys, summary, known, range(done + 1, stop), step)
            if new is None:
                break
            is_held = stop < before or new is known
            known, done = new, stop - 1
    except Exception as error:
        failed(counts, "summary", error, f"the summary of {keys} stays as it was")
        if strict:
            yield from _give_back(keys, token)
            raise
    if is_held:
        yield from _give_back(keys, token)
    return known


class _Step(NamedTuple):
    token: str
    lease_ms: int
    began: int
    clean: Callable[[str], Flow[str]]
    counts: Counter[str]


def _fold_some(
    keys: Keys, summary: Summary, known: Carried, turns: range, step: _Step
) -> Flow[Carried | None]:
    """Fold some turns, and renew the lease or give it back; None where others came first."""
    found: _history.Found = yield _history.page_call(keys, turns.stop, len(turns), "summary")
    # Where turns were undone meanwhile, the page begins earlier than was asked for.
    elements = [element for element in found.elements if element.turn in turns]
    if not elements:
        return known
    answer = yield from summary.question(_prompt(summary.template, known.text, elements))
    last = elements[-1]
    text = yield from step.clean(text_of(answer))
    if summary.tokens is not None:
        cut = _cut(text, summary.tokens * _BYTES_PER_TOKEN)
        if cut != text:
            count(step.counts, "summary_cut")
            log.warning(
                "the summary of %s is cut to %d tokens: the model wrote %d bytes",
                keys,
                summary.tokens,
                len(text.encode("utf-8", "surrogatepass")),
            )
        text = cut
    new = Carried(1, last.no, last.turn, last.total_tokens, text)
    codec, data = _json.dumps(list(new))
    values = {
        "token": step.token,
        "lease_ms": step.lease_ms,
        "covered": known.no,
        "upto": last.revision,
        "value": codec.encode() + data,
    }
    stored = yield _history.script_call("fold", keys, values, int, began=step.began)
    return new if stored else None


def _give_back(keys: Keys, token: str) -> Flow[None]:
    values = {"token": token, "lease_ms": 0, "covered": 0, "upto": "", "value": ""}
    try:
        yield _history.script_call("fold", keys, values, int)
    except TurnstoreError as error:
        log.warning("the lease of %s runs out by itself: %s", keys, error)


def _cut(text: str, most: int) -> str:
    """Cut a text to so many bytes, at the end of a sentence or at least of a word."""
    # Half a letter, which UTF-8 cannot say, counts as one of three bytes.
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text
    kept = data[:most].decode(errors="ignore")
    ends = [end.end() for end in _SENTENCE_END.finditer(kept)]
    if ends and ends[-1] >= len(kept) // 2:
        return kept[: ends[-1]]
    return (kept.rpartition(" ")[0] or kept).rstrip()


def _prompt(template: str, summary: str, elements: list[Element]) -> str:
    told = (
        transcript(element.messages, format_named(element.format), most=MOST_CHARACTERS)
        for element in elements
    )
    return fill(template, summary=summary or "(none)", transcript="\n".join(filter(None, told)))


def _read(reply: bytes | None) -> Carried:
    if not reply:
        return NOTHING
    try:
        known = Carried(*_json.loads(reply))
    except (TypeError, ValueError):
        known = None
    if known is not None and known.format_number == 1 and tuple(map(type, known)) == _TYPES:
        return known
    # Worth less than the turn: all is folded anew, in place of what the scripts see there.
    log.warning("a stored summary cannot be read, and is left aside")
    seen = _COVERED.match(reply)
    return NOTHING._replace(no=int(seen[1])) if seen else NOTHING


class _Begun(NamedTuple):
    granted: int
    known: Carried
    first_turn: int


def _read_begun(reply: list[Any]) -> _Begun:
    granted, stored, first_turn = reply
    return _Begun(granted, _read(stored), first_turn)
