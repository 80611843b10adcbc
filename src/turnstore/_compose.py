"""What the model is sent, and what of a request is new: one set of rules for every client.

- Instructions (system, developer) go first, pass through, and are not stored.
- What was injected (recalled texts, a summary) follows as one system message, then
  history, then the new messages. It is not stored either.
- Messages of the request that are stored already are recognised, and neither sent nor
  stored twice.
- Whatever a model would refuse stays out of what is sent: a tool call without its result,
  a result without its call. It stays stored.
- Where a provider wants the user to speak first, what the model said before that stays out
  too: a greeting, for one.
- Results that answer the open calls of the newest turn continue that turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from . import _json
from .errors import FormatError
from .messages import Format, Message, format_named
from .results import History

__all__ = ["Plan", "compose", "repeats", "with_context", "without_known"]


class Plan(NamedTuple):
    """What becomes of a request.

    Attributes:
        send: What the model is sent: instructions, history, new messages.
        new: What of the request is stored.
        continued: The messages of the open turn that it continues; None for a new turn.
    """

    send: list[Message]
    new: list[Message]
    continued: list[Message] | None


def compose(  # noqa: PLR0913 - a request, and all that it meets
    history: History,
    request: list[Message],
    rules: Format,
    on_other_format: Literal["raise", "text"],
    *,
    shown: History | None = None,
    stored: list[Message] | None = None,
) -> Plan:
    """Put history into a request.

    Args:
        history: What was read.
        request: The messages of the caller.
        rules: Their format.
        on_other_format: What to do about a stored turn of another format.
        shown: The part of the history that is sent; by default all of it.
        stored: The messages of the request as they would be stored, from the first on;
            none where they are stored as they are.

    Raises:
        FormatError: A stored turn has another format, and is not to be sent as text.
        ValueError: The request answers a tool call that no stored turn waits for.
    """
    instructions, rest, new = _split(history, request, rules, stored)
    resumed = rules.resumes and not new
    past_shown = history if shown is None else shown
    groups = _groups(past_shown, rules, on_other_format, apart=resumed)
    answered = _answered_from_outside(new, rules)
    continued: _Group | None = None
    if answered:
        newest = groups[-1] if groups and not groups[-1].orphaned else _Group()
        if not answered <= newest.waiting or not rules.results(new[0]):
            lost = ", ".join(sorted(answered - newest.waiting)) or "a call further back"
            msg = (
                f"the request holds a tool result for {lost}, and no stored turn waits for it; "
                "the call may have expired or been rewound, or another turn came between. "
                "Send the assistant's message with the call as well; nothing was written"
            )
            raise ValueError(msg)
        continued = newest
    elif resumed and groups:
        # The model goes on with its own last message, so what it says belongs to that turn; a
        # turn has one format.
        newest = groups[-1]
        _, format_, _ = past_shown.pieces[-1]
        if newest.complete and rules.is_reply(newest.messages[-1]) and format_ == rules.name:
            continued = newest
    past: list[Message] = []
    for group in groups:
        if group.plain:
            past += group.messages
        elif group is continued or group.complete:
            past += map(rules.outgoing, group.messages)
    if rules.user_first and past:
        open_turn = len(continued.messages) if continued else 0
        past = past[_before_the_user(past[: len(past) - open_turn], rules) :]
    # What is stored is a copy: clients may change the messages that they are sent.
    kept = [_json.plain(message) for message in new]
    return Plan(instructions + past + rest, kept, continued.messages if continued else None)


def with_context(plan: Plan, request: list[Message], rules: Format, text: str) -> Plan:
    """Put what was recalled, and a summary, between the instructions and the history."""
    if not text:
        return plan
    at = _leading(request, rules)
    return plan._replace(send=[*plan.send[:at], rules.context(text), *plan.send[at:]])


def _before_the_user(past: list[Message], rules: Format) -> int:
    """Count the messages before the first that the user wrote: replies, and results of tools."""
    for at, message in enumerate(past):
        if not rules.is_reply(message) and not rules.results(message):
            return at
    return len(past)


def without_known(
    history: History, request: list[Message], rules: Format, stored: list[Message] | None = None
) -> list[Message]:
    """Leave out of a request what a history ends with; see `_overlap`."""
    instructions, rest, _ = _split(history, request, rules, stored)
    return instructions + rest


def _split(
    history: History, request: list[Message], rules: Format, stored: list[Message] | None
) -> tuple[list[Message], list[Message], list[Message]]:
    """Give the leading instructions, what is to be sent after the history, and what is new."""
    leading = _leading(request, rules)
    instructions, rest = request[:leading], request[leading:]
    spoken = [message for message in rest if not rules.is_instruction(message)]
    known = _overlap(history, spoken, rules)
    if stored:
        # Those that were added later have no other form than their own.
        forms = stored + request[len(stored) :]
        pairs = zip(request[leading:], forms[leading:], strict=True)
        as_stored = [form for message, form in pairs if not rules.is_instruction(message)]
        known = max(known, _overlap(history, as_stored, rules))
    new = spoken[known:]
    if known:
        # From the first new message on, with the instructions that stand between.
        first = (i for i, message in enumerate(rest) if new and message is new[0])
        rest = rest[next(first, len(rest)) :]
    return instructions, rest, new


def _leading(request: list[Message], rules: Format) -> int:
    """Count the instructions that a request begins with."""
    for at, message in enumerate(request):
        if not rules.is_instruction(message):
            return at
    return len(request)


def repeats(asked: list[Message], rules: Format, saved: list[Message], theirs: Format) -> bool:
    """Tell whether a request is the one that a turn was saved with, as far as that can be told.

    The turn may lack the beginning of the request, which was stored already; and the request that
    of the turn, where it brings the results of tools.

    Args:
        asked: The request, as it would be stored.
        rules: Its format.
        saved: The messages of the turn.
        theirs: Their format; of another one, texts are compared.
    """
    asked = [message for message in asked if not rules.is_instruction(message)]
    while asked and rules.is_reply(asked[-1]):  # the model was to go on with it
        asked.pop()
    if not asked:
        return True
    saved = [message for message in saved if not theirs.is_instruction(message)]
    for end in range(1, len(saved) + 1):
        both = min(end, len(asked))
        if both < end and not rules.results(asked[0]):
            continue
        pairs = zip(saved[end - both : end], asked[-both:], strict=True)
        if rules.name == theirs.name:
            same = all(_same(*pair, rules) for pair in pairs)
        else:
            same = all(theirs.text(one) == rules.text(other) for one, other in pairs)
        if same:
            return True
    return False


@dataclass(slots=True)
class _Group:
    """Messages that are sent together or not at all: a turn, or turns joined by tool calls.

    A plain group is a run of any length of turns that are nothing but text.
    """

    plain: bool = False
    messages: list[Message] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    orphaned: bool = False

    @property
    def complete(self) -> bool:
        return not self.waiting and not self.orphaned

    def add(self, messages: list[Message], rules: Format) -> None:
        for message in messages:
            if rules.is_plain(message):
                continue
            for result in rules.results(message):
                if result in self.waiting:
                    self.waiting.discard(result)
                else:
                    self.orphaned = True
            self.waiting.update(rules.calls(message))
        self.messages += messages


def _groups(history: History, rules: Format, on_other_format: str, *, apart: bool) -> list[_Group]:
    """Give the groups of a history; with `apart`, none of several turns of text."""
    groups: list[_Group] = []
    latest = _Group()
    # Most turns are a question and an answer. Those need no look at what is called and answered
    # in them, unless a later piece of the turn may call something.
    whole = not apart and not history.has_pieces
    turn = 0
    for number, name, messages in history.pieces:
        if name != rules.name:
            messages = _as_text(messages, name, rules, on_other_format)  # noqa: PLW2901 - as sent
        if whole and all(map(rules.is_plain, messages)):
            if not latest.plain:
                groups.append(latest := _Group(plain=True))
            latest.messages += messages
        else:
            if not groups or (number != turn and not _continues(latest, messages, rules)):
                groups.append(latest := _Group())
            latest.add(messages, rules)
        turn = number
    return groups


def _continues(group: _Group, messages: list[Message], rules: Format) -> bool:
    """Tell whether tool results that were appended as a turn of their own belong to a group."""
    return bool(group.waiting) and not group.waiting.isdisjoint(
        _answered_from_outside(messages, rules)
    )


def _as_text(
    stored: list[Message], name: str, rules: Format, on_other_format: str
) -> list[Message]:
    if on_other_format != "text":
        msg = (
            f"a stored turn has the format {name}, and this client speaks {rules.name}; its "
            'messages cannot be sent as they are. on_other_format="text" sends their text alone'
        )
        raise FormatError(msg)
    theirs = format_named(name)
    return [
        rules.assistant(text) if theirs.is_reply(message) else rules.user(text)
        for message in stored
        if (text := theirs.text(message)) and not theirs.is_instruction(message)
    ]


def _answered_from_outside(new: list[Message], rules: Format) -> set[str]:
    """Collect the tool calls that a request answers without holding them itself."""
    held: set[str] = set()
    outside: set[str] = set()
    for message in new:
        outside.update(result for result in rules.results(message) if result not in held)
        held.update(rules.calls(message))
    return outside


def _overlap(history: History, spoken: list[Message], rules: Format) -> int:
    """Count the messages at the start of a request that the history ends with.

    Hand-written tool loops, and libraries that ask again, send back what was stored a
    moment ago. A reply of the model must be among them, and something new must follow:
    a user who says the same thing twice says it twice. (Where a model goes on with its
    own last message, nothing need follow that.)
    """
    resumed = rules.resumes and spoken and rules.is_reply(spoken[-1])
    for known in range(len(spoken) if resumed else len(spoken) - 1, 0, -1):
        if known > len(history):
            continue  # what is not there to be compared is not taken for known
        sent = spoken[:known]
        pairs = zip(history[-known:], sent, strict=True)
        if any(map(rules.is_reply, sent)) and all(_same(*pair, rules) for pair in pairs):
            return known
    return 0


def _same(stored: Message, sent: Message, rules: Format) -> bool:
    if stored == sent:
        return True
    calls = rules.calls(stored)
    if calls:
        return calls == rules.calls(sent)
    whole, part = _bare(rules.comparable(stored)), _bare(rules.comparable(sent))
    if not rules.is_reply(stored):
        return bool(whole == part)
    # The model's message as the caller rebuilt it: it may lack fields, not contradict them.
    return (
        whole.get("content") == part.get("content")
        and part.keys() <= whole.keys()
        and all(whole[name] == value for name, value in part.items())
    )


def _bare(value: Any) -> Any:
    """Leave out what says nothing: null, and empty texts, lists and objects."""
    if isinstance(value, dict):
        return {name: _bare(item) for name, item in value.items() if item not in (None, "", [], {})}
    return [_bare(item) for item in value] if isinstance(value, list) else value
