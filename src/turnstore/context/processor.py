"""Trim and summarise a list of messages that lives elsewhere, in a user's own hands."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from turnstore._calls import Ask
from turnstore._counting import count
from turnstore.messages import FORMATS, Format, Input, Message, plain_messages
from turnstore.window import limit

from ._common import (
    MOST_CHARACTERS,
    SUMMARY_HEADING,
    SUMMARY_PROMPT,
    Asking,
    check_function,
    check_template,
    failed,
    fill,
    text_of,
    transcript,
)
from ._exchanges import Exchanges
from .tokens import TokenCounter, token_counter

__all__ = ["SUMMARY_HEADING", "SUMMARY_PROMPT", "Processor", "Summarize"]

Summarize: TypeAlias = Callable[[str], "str | Awaitable[str]"]
"""Takes a prompt and answers a summary."""

_FORMATS = ("openai.chat", "openai.responses", "anthropic.messages", "google.contents")

# What chat completions have nowhere, and another provider's messages always have where tools are.
_OTHER_BLOCKS = frozenset(("tool_use", "tool_result"))

# The share of the budget that is kept free for a summary when something falls out.
_ROOM = 8


class Processor:
    """Trims a list of messages, and carries what falls out as a summary.

    For histories that are not kept in a store. An exchange is a user's message and
    everything up to the next one; exchanges fall out whole, oldest first, and the newest
    always stays. System and developer messages all stay, where they stand. So does each
    tool call with its result; a call without a result, or a result without a call, is
    left out, but for calls at the very end of the list whose results are still to come.

    The limits are applied in the order of the arguments. The summary is a system message
    after the leading ones; for Anthropic and Gemini, whose messages know no such role, it is a
    message of the user. It is found there again the next time by its first line, and
    is then an input of the next summary: give the processor what it gave before, with the
    new messages at its end. Where `summarize` fails, the list is trimmed all the same;
    the failure is logged, and counted in `counts["summary"]`.

    Args:
        max_exchanges: At most so many exchanges; None sets no limit.
        max_tokens: At most so many tokens in the whole list, system messages and summary
            included; only the newest exchange may go beyond. None sets no limit.
        use_summary: Whether what falls out is summarised.
        summary_prompt_template: The prompt for `summarize`. `{transcript}` stands for what
            fell out; `{summary}` for the summary so far, which goes before the messages
            where the template has no such place.
        format: Whose messages they are: `openai.chat`, `openai.responses`,
            `anthropic.messages` or `google.contents`.
        summarize: Takes a prompt and answers the summary as text. With `aprocess` it may
            be async; a sync one runs in the event loop there, and holds it up.
        count_tokens: The name of an encoding or a model, or a function that counts one
            message; None for `cl100k_base`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A limit is below 1, there is nothing to summarise with, or the format is
            another one.

    Example:
        >>> from turnstore.context import Processor
        >>> processor = Processor(max_exchanges=1)
        >>> processor.process(
        ...     [
        ...         {"role": "system", "content": "Be brief."},
        ...         {"role": "user", "content": "What is 2 + 2?"},
        ...         {"role": "assistant", "content": "4."},
        ...         {"role": "user", "content": "And 3 + 3?"},
        ...     ]
        ... )
        [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'And 3 + 3?'}]
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing it does
        self,
        max_exchanges: int | None = None,
        max_tokens: int | None = None,
        use_summary: bool = False,  # noqa: FBT001, FBT002 - they are applied in this order
        summary_prompt_template: str = SUMMARY_PROMPT,
        *,
        format: str = "openai.chat",  # noqa: A002 - the public name
        summarize: Summarize | None = None,
        count_tokens: str | Callable[[Message], int] | TokenCounter | None = None,
    ) -> None:
        if format not in _FORMATS:
            msg = f"Processor(format={format!r}): the formats are {', '.join(_FORMATS)}"
            raise ValueError(msg)
        self._rules = FORMATS[format]
        self._max_exchanges = limit("Processor(max_exchanges={})", max_exchanges)
        self._max_tokens = limit("Processor(max_tokens={})", max_tokens)
        check_template("summary_prompt_template", summary_prompt_template, "transcript")
        self._template = summary_prompt_template
        if summarize is not None:
            check_function("summarize", summarize)
        elif use_summary:
            msg = "use_summary=True needs summarize=, a function that answers a prompt"
            raise ValueError(msg)
        self._summarize = summarize if use_summary else None
        self._counter = None if max_tokens is None else token_counter(count_tokens)
        self.counts: Counter[str] = Counter()
        """How often it happened: `summary` (it failed), `unpaired` (a message left out)."""

    def process(self, messages: Input) -> list[Message]:
        """Trim a list of messages.

        Args:
            messages: Messages as dicts or SDK objects, oldest first. They are not changed.

        Returns:
            What is left of them, in their order, as plain dicts.

        Raises:
            TypeError: They are no messages, or `summarize` is async.
            ValueError: A message is not JSON, or not one of the format.
        """
        flow = self._flow(messages)
        answer: Any = None
        try:
            ask = next(flow)
            while True:
                try:
                    answer = ask.function(*ask.arguments)
                except Exception as error:  # noqa: BLE001 - the flow goes on without it
                    ask = flow.throw(error)
                    continue
                if inspect.isawaitable(answer):
                    if inspect.iscoroutine(answer):
                        answer.close()
                    msg = "summarize is async; use aprocess"
                    raise TypeError(msg)
                ask = flow.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any

    async def aprocess(self, messages: Input) -> list[Message]:
        """Trim a list of messages.

        Args:
            messages: Messages as dicts or SDK objects, oldest first. They are not changed.

        Returns:
            What is left of them, in their order, as plain dicts.

        Raises:
            TypeError: They are no messages.
            ValueError: A message is not JSON, or not one of the format.
        """
        flow = self._flow(messages)
        try:
            ask = next(flow)
            while True:
                try:
                    answer = ask.function(*ask.arguments)
                    if inspect.isawaitable(answer):
                        answer = await answer
                except Exception as error:  # noqa: BLE001 - the flow goes on without it
                    ask = flow.throw(error)
                    continue
                ask = flow.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # StopIteration.value is Any

    def _flow(self, given: Input) -> Asking[list[Message]]:
        rules = self._rules
        messages = plain_messages(given, rules)
        if rules.name == "openai.chat":
            _check_chat(messages)
        exchanges = Exchanges(
            messages, rules, lambda one: rules.is_instruction(one) or _is_summary(one, rules)
        )
        if exchanges.unpaired:
            count(self.counts, "unpaired", len(exchanges.unpaired))
        # Summaries count as instructions until a new one takes their place.
        budget = _Budget(self._max_tokens, self._counter, messages, exchanges)
        earlier = [at for at in exchanges.instructions if _is_summary(messages[at], rules)]
        start = exchanges.start(self._first_by_number(exchanges))
        start = max(start, budget.start(exchanges.instructions))
        trimmed = [messages[at] for at in exchanges.kept(start)]
        if not start or self._summarize is None:
            return trimmed

        instructions = [at for at in exchanges.instructions if at not in earlier]
        summary = "\n\n".join(_summary_of(messages[at], rules) for at in earlier)
        # Trimmed a little further at once, so that the summary finds room.
        start = max(start, budget.start(instructions, budget.room(earlier)))
        fallen = exchanges.between(0, start)
        while True:
            batch = [messages[at] for at in fallen]
            folded = yield from self._fold(self._summarize, summary, batch)
            if not folded:
                return trimmed
            summary = folded
            carried = _carried(summary, rules)
            further = budget.start(instructions, budget.count(carried))
            if further <= start:
                break
            # It is longer than the room it was given: more has to go, into the summary too.
            fallen, start = exchanges.between(start, further), further
        if budget.only_too_large_with(carried, instructions, start):
            error = ValueError("the summary leaves no room for the newest exchange")
            failed(self.counts, "summary", error, "the messages are trimmed without it")
            return trimmed
        leading = exchanges.leading
        kept = [at for at in exchanges.kept(start) if at not in earlier]
        return [
            *(messages[at] for at in kept if at < leading),
            carried,
            *(messages[at] for at in kept if at >= leading),
        ]

    def _first_by_number(self, exchanges: Exchanges) -> int:
        most = self._max_exchanges
        if most is None or exchanges.led <= most:
            return 0
        return len(exchanges) - most

    def _fold(
        self, summarize: Summarize, summary: str, messages: list[Message]
    ) -> Asking[str | None]:
        """Fold messages into a summary; None where that failed."""
        text = transcript(messages, self._rules, most=MOST_CHARACTERS)
        if not text:
            return summary
        prompt = fill(self._template, summary=summary or "(none)", transcript=text)
        if summary and "{summary}" not in self._template:
            with_summary = f"{SUMMARY_HEADING}\n{summary}\n\n{text}"
            prompt = fill(self._template, transcript=with_summary)
        try:
            return text_of((yield Ask(summarize, (prompt,))))
        except Exception as error:  # noqa: BLE001 - whatever it is, the trimmed list is left
            failed(self.counts, "summary", error, "the messages are trimmed without it")
            return None


class _Budget:
    """Where to begin by tokens; counts from the newest exchange backwards, while they fit."""

    def __init__(
        self,
        most: int | None,
        counter: TokenCounter | None,
        messages: list[Message],
        exchanges: Exchanges,
    ) -> None:
        self._most = most
        self._counter = counter
        self._messages = messages
        self._exchanges = exchanges
        self._totals = [0]  # of no exchange, the newest, the newest two, …
        self._instructions: dict[int, int] = {}

    def count(self, message: Message) -> int:
        """Count one message; 0 where there is no limit."""
        return 0 if self._counter is None else self._counter(message)

    def room(self, earlier: list[int]) -> int:
        """Tell how many tokens to keep free for a summary that follows these."""
        return 0 if self._most is None else max(self._of(earlier), self._most // _ROOM)

    def start(self, instructions: list[int], more: int = 0) -> int:
        """Find the first exchange that fits beside instructions and so many tokens more."""
        if self._most is None:
            return 0
        left = self._most - self._of(instructions) - more
        held, fit = len(self._exchanges), 0
        while fit < held and self._newest(fit + 1) <= left:
            fit += 1
        return self._exchanges.start(held - fit)

    def only_too_large_with(self, summary: Message, instructions: list[int], start: int) -> bool:
        """Tell whether what is left would fit, were it not for the summary."""
        if self._most is None:
            return False
        kept = self._of(instructions) + self._newest(len(self._exchanges) - start)
        return kept <= self._most < kept + self.count(summary)

    def _newest(self, exchanges: int) -> int:
        while len(self._totals) <= exchanges:
            first = len(self._exchanges) - len(self._totals)
            added = self._exchanges.between(first, first + 1)
            tokens = sum(self.count(self._messages[at]) for at in added)
            self._totals.append(self._totals[-1] + tokens)
        return self._totals[exchanges]

    def _of(self, instructions: list[int]) -> int:
        for at in instructions:
            if at not in self._instructions:
                self._instructions[at] = self.count(self._messages[at])
        return sum(self._instructions[at] for at in instructions)


def _carried(summary: str, rules: Format) -> Message:
    text = f"{SUMMARY_HEADING}\n{summary}"
    # Where the user has to speak first, there is no other role among the messages.
    return rules.user(text) if rules.user_first else rules.context(text)


def _is_summary(message: Message, rules: Format) -> bool:
    text = rules.text(message)
    if not text.startswith(f"{SUMMARY_HEADING}\n"):
        return False
    return bool(message.get("role") == _carried("", rules)["role"])


def _summary_of(message: Message, rules: Format) -> str:
    return rules.text(message).partition("\n")[2]


def _check_chat(messages: list[Message]) -> None:
    """Refuse messages of other providers, whose calls and texts would not be seen.

    Raises:
        ValueError: There is one.
    """
    for at, message in enumerate(messages):
        content = message.get("content")
        blocks = content if isinstance(content, list) else ()
        kinds = {str(block.get("type")) for block in blocks if isinstance(block, dict)}
        name = "anthropic.messages" if kinds & _OTHER_BLOCKS else ""
        name = "google.contents" if "content" not in message and "parts" in message else name
        if name:
            msg = f"message {at} is one of {name}; give Processor(format={name!r})"
            raise ValueError(msg)
