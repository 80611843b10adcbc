"""What a context costs: windows by tokens, the unchanged prefix of prompts, a summary that rests.

`context_read`: the newest 100 messages of 10,000 turns, by messages, by the tokens they have, by
all limits at once. `context_count`, `context_count_all`: the same by tokens, beside counting on
read, of those 100 and of all that is stored.
`context_prefix`: over 1,000 turns, the share of the prompts' tokens that are an unchanged prefix of
the prompt before. `context_turn`: a turn with a summary that folds nothing, beside one without.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mix
from context import Filled
from harness import Go
from subjects import Ours, OursAsync

if TYPE_CHECKING:
    from context import Context

NEWEST = 100
BUDGET = 8_000
POLICY = {"role": "system", "content": mix.plain_turn(mix.random.Random(1))[1]["content"]}


def measure(context: Context) -> list[dict[str, Any]]:
    """All figures of one kind."""
    if context.peer is not None or not any(kind.name == "turnstore" for kind in context.types):
        return []
    found = [*_read(context), *_turn(context)]
    return found if context.kind == "async" else [*found, *_prefix(context)]


def _store(context: Context, *, sync: bool) -> Any:
    import turnstore  # noqa: PLC0415 (a peer's environment may lack it)

    kind = turnstore.Store if sync or context.kind == "sync" else turnstore.AsyncStore
    return kind.from_url(context.url, name="bench", max_messages=None, count_tokens="cl100k_base")


def _counter() -> Any:
    from turnstore.context.tokens import token_counter  # noqa: PLC0415 (as above)

    return token_counter("cl100k_base")


def _read(context: Context) -> list[dict[str, Any]]:
    from turnstore import Window  # noqa: PLC0415 (as above)

    turns = 500 if context.effort.quick else 10_000
    filler, store, counter = _store(context, sync=True), _store(context, sync=False), _counter()
    chat = filler.conversation("long")
    for turn in mix.conversation(2 * turns)[-turns:]:
        chat.append(turn)
    newest = chat.read(Window(messages=NEWEST))
    if len(newest) != NEWEST:
        raise AssertionError(len(newest))
    by = {
        "by messages": Window(messages=NEWEST),
        "by tokens": Window(tokens=counter.total(newest)),
        "by all limits": Window(NEWEST, NEWEST, counter.total(newest)),
    }
    for name, window in by.items():
        if chat.read(window) != newest:
            raise AssertionError(name)
    chat = store.conversation("long")
    gos = [Go(name, lambda _, w=window: chat.read(w)) for name, window in by.items()]

    def counting(name: str, window: Window) -> Go:
        async def later(_: int) -> int:
            return counter.total(await chat.read(window))

        def now(_: int) -> int:
            return counter.total(chat.read(window))

        return Go(name, now if context.kind == "sync" else later)

    figures = context.time("context_read", gos, stored=turns)
    # In rounds of their own: a read that follows much counting finds cold caches.
    for case, window in (("context_count", by["by messages"]), ("context_count_all", Window())):
        tokens = Go("by tokens", lambda _: chat.read(by["by tokens"]))
        pair = [tokens, counting("counted on read", window)]
        figures += context.time(case, pair, stored=turns)
    filler.close()
    context.do(store.close())
    return figures


class _WithSummary(Ours):
    """A turn whose context has a summary, and nothing to fold."""

    name = "with a summary"

    def __init__(self, url: str) -> None:
        from turnstore.context import Context, Summary  # noqa: PLC0415 (as above)

        super().__init__(url)
        never = Summary(lambda _: "", after_turns=10**9)
        self.contexts = {n: Context(w, summary=never) for n, w in self.windows.items()}

    def turn(self, key: str, count: int, turn: Any) -> Any:
        with self.handle(key).turn(turn[:1], context=self.contexts[count]) as pending:
            pending.reply(turn[1:])


class _WithSummaryAsync(OursAsync):
    """The same on AsyncStore."""

    name = "with a summary"

    def __init__(self, url: str) -> None:
        from turnstore.context import Context, Summary  # noqa: PLC0415 (as above)

        super().__init__(url)
        never = Summary(lambda _: "", after_turns=10**9)
        self.contexts = {n: Context(w, summary=never) for n, w in self.windows.items()}

    async def turn(self, key: str, count: int, turn: Any) -> Any:
        async with self.handle(key).turn(turn[:1], context=self.contexts[count]) as pending:
            pending.reply(turn[1:])


def _turn(context: Context) -> list[dict[str, Any]]:
    """At 40 messages the window of 50 holds all; at 200 it does not, and the summary is read."""
    found: list[dict[str, Any]] = []
    kinds: Any = (Ours, _WithSummary) if context.kind == "sync" else (OursAsync, _WithSummaryAsync)
    for count in (40, 200):
        subjects = [kind(context.url) for kind in kinds]
        gos = []
        for subject in subjects:
            label = f"context_turn:{subject.name}"
            filled = Filled(context, subject, label, count, context.effort.inner)
            filled.room = context.effort.inner
            gos.append(
                Go(
                    subject.name,
                    lambda i, f=filled, s=subject: s.turn(f.key, 50, f.next_turn(i)),
                    filled.renew,
                )
            )
        found += context.time("context_turn", gos, stored=count)
        for subject in subjects:
            context.do(subject.close())
    return found


def _prefix(context: Context) -> list[dict[str, Any]]:
    """Shares of tokens; no times."""
    from turnstore import Window  # noqa: PLC0415 (as above)

    turns = mix.conversation(4_000)[-(100 if context.effort.quick else 1_000) :]
    counter = _counter()
    known: dict[str, int] = {}

    def size(message: dict[str, Any]) -> int:
        text = json.dumps(message)
        if text not in known:
            known[text] = counter(message)
        return known[text]

    plain = Window(tokens=BUDGET)
    found = [_shares(context, "by tokens, no step", plain, turns, size)]
    held = round(found[0]["turns_a_prompt"])
    windows = {
        "by turns, sliding by one": Window(turns=held),
        "by tokens, step 0.25": Window(tokens=BUDGET, step=0.25),
        "by tokens, step 0.5": Window(tokens=BUDGET, step=0.5),
        "by turns, step 0.5": Window(turns=held, step=0.5),
    }
    found += [_shares(context, name, window, turns, size) for name, window in windows.items()]
    return found


def _shares(
    context: Context, name: str, window: Any, turns: list[mix.Turn], size: Any
) -> dict[str, Any]:
    store = _store(context, sync=True)
    chat = store.conversation(f"prefix {name}")
    before: list[dict[str, Any]] = []
    total = cached = moved = held = 0
    for number, (ask, *answer) in enumerate(turns):
        with chat.turn([POLICY, ask], window=window) as turn:
            sent = list(turn.messages)
            held += len(turn.history.turns)
            turn.reply(answer)
        same = 0
        while same < min(len(before), len(sent)) and before[same] == sent[same]:
            same += 1
        if number:
            total += sum(map(size, sent))
            cached += sum(map(size, sent[:same]))
            moved += same < len(before)
        before = sent
    store.close()
    calls = len(turns) - 1
    return {
        "case": "context_prefix",
        "kind": context.kind,
        "subject": name,
        "window": repr(window),
        "calls": calls,
        "share": round(cached / total, 4),
        "tokens_a_prompt": round(total / calls, 1),
        "new_tokens_a_prompt": round((total - cached) / calls, 1),
        "starts_moved": moved,
        "turns_a_prompt": round(held / len(turns), 2),
    }
