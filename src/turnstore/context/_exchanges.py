"""A list of messages by exchanges, which stay or fall out whole."""

from __future__ import annotations

from collections.abc import Callable

from turnstore.messages import Format, Message

__all__ = ["Exchanges"]


class Exchanges:
    """Messages by exchanges: a user's message and all up to the next one.

    What stands before the first message of a user counts as one more, that nobody led.
    Everything is said in indexes of the list.

    Attributes:
        instructions: What stays in any case, such as system messages; it belongs to no exchange.
        leading: How many of the messages are instructions before all others.
        unpaired: Tool calls without results and results without calls; they belong to
            no exchange either. A call is not among them while its results can still come.
        led: How many of the exchanges a user began.
    """

    def __init__(
        self, messages: list[Message], rules: Format, is_instruction: Callable[[Message], bool]
    ) -> None:
        self.instructions = [at for at, one in enumerate(messages) if is_instruction(one)]
        policy = set(self.instructions)
        self.leading = next((at for at in range(len(messages)) if at not in policy), len(messages))
        pairs, self.unpaired = _paired(messages, rules, policy)
        self._exchanges: list[list[int]] = []
        self.led = 0
        number: dict[int, int] = {}
        for at, message in enumerate(messages):
            if at in policy or at in self.unpaired:
                continue
            led = not rules.is_reply(message) and not rules.results(message)
            if led or not self._exchanges:
                self._exchanges.append([])
            self.led += led
            self._exchanges[-1].append(at)
            number[at] = len(self._exchanges) - 1
        # A result may come after a user's next message: then both exchanges stay together.
        joined: set[int] = set()
        for call, result in pairs:
            if call in number and result in number:
                joined.update(range(number[call] + 1, number[result] + 1))
        self._starts = [first for first in range(len(self._exchanges)) if first not in joined]

    def __len__(self) -> int:
        return len(self._exchanges)

    def start(self, wanted: int) -> int:
        """Find the exchange to begin with: this one or the next that can be a beginning."""
        later = (first for first in self._starts if first >= wanted)
        return next(later, self._starts[-1] if self._starts else 0)

    def between(self, first: int, end: int) -> list[int]:
        """List the messages of some exchanges, the last of which is not `end` itself."""
        return [at for exchange in self._exchanges[first:end] for at in exchange]

    def kept(self, start: int) -> list[int]:
        """List all instructions, and the messages from an exchange on, in their order."""
        return sorted([*self.instructions, *self.between(start, len(self))])


def _paired(
    messages: list[Message], rules: Format, policy: set[int]
) -> tuple[list[tuple[int, int]], set[int]]:
    """Match tool calls and results: the pairs, and the messages that are left alone."""
    waiting: dict[str, list[int]] = {}  # where the calls of each id stand
    pairs: list[tuple[int, int]] = []
    alone: set[int] = set()
    # The newest message that is neither an instruction nor a result. Where calls are items of
    # their own, without a role, it is those that were made at once.
    latest: set[int] = set()
    answered = False
    for at, message in enumerate(messages):
        if at in policy:
            continue
        results = rules.results(message)
        if not results:
            latest = {at} if "role" in message or answered else latest | {at}
        answered = bool(results)
        for id_ in results:
            calls = waiting.get(id_)
            if calls:
                # Some providers count their ids from 0 in each reply: the newest call counts.
                pairs.append((calls.pop(), at))
            else:
                alone.add(at)
        for id_ in rules.calls(message):
            waiting.setdefault(id_, []).append(at)
    unanswered = {at for calls in waiting.values() for at in calls} - latest
    alone |= unanswered | {result for call, result in pairs if call in unanswered}
    return pairs, alone
