"""The ways in which a caller may have set up the Redis client that a store is given."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import product
from typing import Literal


@dataclass(frozen=True)
class Setup:
    """One way to set up a client."""

    client: Literal["sync", "async"]
    protocol: Literal[2, 3]
    decode: bool

    def __str__(self) -> str:
        return f"{self.client}-resp{self.protocol}-{'str' if self.decode else 'bytes'}"


_CLIENTS: tuple[Literal["sync", "async"], ...] = ("sync", "async")
_PROTOCOLS: tuple[Literal[2, 3], ...] = (2, 3)

# The full cross product runs on one server. What a setup changes is how redis-py frames commands
# and reads replies, which hardly depends on the server, so the others get the four setups in
# which each pair of choices (client and protocol, client and decoding, protocol and decoding)
# still occurs: half the time, and only a fault that needs all three choices and one particular
# server would be missed. Where not even that matters, `one_setup` is one run for each client;
# which setups these are is another choice for each test and server, so that the suite meets all.
ALL = tuple(Setup(*choice) for choice in product(_CLIENTS, _PROTOCOLS, (False, True)))
PAIRWISE = tuple(
    setup for setup in ALL if (setup.client == "sync") == (setup.decode == (setup.protocol == 3))
)
_SYNC, _ASYNC = ALL[:4], ALL[4:]


def one_for_each_client(test: str) -> tuple[Setup, Setup]:
    """Choose a setup of each client, alike in nothing, by the name of a test and its server."""
    number = zlib.crc32(test.encode()) % len(_SYNC)  # hash() is another in each process
    return _SYNC[number], _ASYNC[-1 - number]


# For tests that start a server and make its clients themselves.
ONE = (Setup("sync", 2, decode=False), Setup("async", 3, decode=True))
