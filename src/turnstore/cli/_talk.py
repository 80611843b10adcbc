"""One of the demo's processes: an application with the openai package and a memory.

It reads questions from its standard input, one JSON object a line, and writes pieces of answers
to its standard output as they arrive, one JSON value a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from ..conversation import Conversation
from ..store import Store

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["ask", "main"]


# The demo prints this function.
def ask(chat: Conversation, openai: OpenAI, text: str) -> Iterator[str]:
    client = chat.wrap(openai)
    stream = client.chat.completions.create(
        model="demo",
        messages=[{"role": "user", "content": text}],
        stream=True,
    )
    with stream:
        for chunk in stream:
            yield chunk.choices[0].delta.content or ""


def main() -> int:
    """Answer what is asked until standard input ends."""
    from openai import OpenAI  # noqa: PLC0415 - the demo shows this module's code without it

    place = json.loads(os.environ["TURNSTORE_DEMO"])
    with Store.from_url(
        place["url"],
        cluster=place["cluster"],
        name=place["name"],
        prefix=place["prefix"],
        ttl=timedelta(seconds=place["ttl_seconds"]),
    ) as store:
        chat = store.conversation(place["id"])
        openai = OpenAI()
        _write({"ready": os.getpid()})
        for line in sys.stdin:
            question = json.loads(line)
            answer = cast("Generator[str, None, None]", ask(chat, openai, question["text"]))
            # Leaving before the end closes the stream, as when a user goes away.
            with closing(answer):
                for piece in islice(filter(None, answer), question["pieces"]):
                    _write({"piece": piece})
            _write({"done": True})
    return 0


def _write(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    sys.exit(main())
