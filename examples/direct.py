"""The store without a wrapper: around any model, and what else one does with a conversation.

python examples/direct.py          with the server at REDIS_URL, or one of its own
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from turnstore import ConflictError, Conversation, Store, Window
from turnstore.server import EmbeddedServer


def model(messages: list[dict[str, Any]]) -> str:
    """Stand for any model: put your own client here."""
    return f"I was sent {len(messages)} messages."


def talk(chat: Conversation) -> None:
    """Hold a conversation: the history is read before each call, and the turn saved after it."""
    for question in ("Hello!", "Do you remember me?"):
        with chat.turn(question, window=Window(turns=20)) as turn:
            turn.reply(model(turn.messages))
        print(f"{question:22}{chat.read()[-1]['content']}")


def save_what_is_known(chat: Conversation) -> None:
    """Append by hand, safely: a repeated save is recognised, a stale one refused."""
    seen = chat.read().revision
    first = chat.append("Order 7, please", turn_id="request-7", expected_revision=seen)
    again = chat.append("Order 7, please", turn_id="request-7", expected_revision=seen)
    print(f"{'repeated':22}stored twice: {not again.duplicate}, {first.turns} turns")
    try:
        chat.append("Order 8, please", expected_revision=seen)
    except ConflictError as error:
        print(f"{'stale':22}refused: {error.actual != seen}")


def look_after(chat: Conversation) -> None:
    """Undo, copy, measure, let it expire."""
    undone = chat.rewind()
    print(f"{'undone':22}{undone[0].messages[0]['content']}")
    branch = chat.fork("another way on")
    branch.append("What if …?")
    print(f"{'branches':22}{chat.stat().turns} and {branch.stat().turns} turns")
    chat.expire(timedelta(minutes=5))
    print(f"{'kept for':22}{chat.stat().ttl}")


def main() -> None:
    """Run it all, and delete what it made."""
    with ExitStack() as stack:
        url = os.environ.get("REDIS_URL") or stack.enter_context(EmbeddedServer()).url
        store = stack.enter_context(Store.from_url(url, name="example"))
        chat = store.conversation("direct")
        stack.callback(store.conversation("another way on").clear)
        stack.callback(chat.clear)
        talk(chat)
        save_what_is_known(chat)
        look_after(chat)


if __name__ == "__main__":
    main()
