"""A signal handler raises in the middle of a command: nobody is given the reply of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from redis.connection import AbstractConnection

from tests.store.talk import texts
from turnstore import SaveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import Store

pytestmark = [
    pytest.mark.one_setup,
    pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster"),
]


class TimeIsUp(Exception):  # noqa: N818 - as the time limits of jobs are named
    """What a handler raises."""


def _say(store: Store, owner: str) -> None:
    with store.conversation("c", owner=owner).turn("q") as turn:
        turn.reply("a")


WORK: dict[str, Callable[[Store, str], object]] = {
    "read": lambda store, owner: store.conversation("c", owner=owner).read(),
    "turn": _say,
    "list": lambda store, owner: store.conversations(owner),
    "erase": lambda store, owner: store.erase(owner, verify=True),
}


@pytest.mark.parametrize("kind", [TimeIsUp, KeyboardInterrupt])
@pytest.mark.parametrize("name", WORK)
def test_what_was_sent_is_answered_to_nobody_else(
    make_store: Callable[..., Store],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
    name: str,
) -> None:
    store = make_store()
    bob = store.conversation("c", owner="bob")
    bob.append("of bob")
    left = 0

    def send(self: Any, *args: Any, **options: Any) -> None:
        nonlocal left
        real(self, *args, **options)
        left -= 1
        if left == 0:
            raise kind

    real: Any = AbstractConnection.send_packed_command
    monkeypatch.setattr(AbstractConnection, "send_packed_command", send)
    interrupted = 0
    for nth in range(1, 12):
        owner = f"ada {nth}"
        _say(store, owner)
        left = nth
        try:
            WORK[name](store, owner)
        except (kind, SaveError):  # the end of a turn says what it had to save
            interrupted += 1
        left = 0
        for _ in range(3):
            assert texts(bob.read()) == ["of bob"], f"after an interruption in sending {nth}"
    assert interrupted, "nothing was interrupted"
