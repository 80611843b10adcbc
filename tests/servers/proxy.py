"""A TCP proxy before a server that cuts connections where a test tells it to.

It knows where commands and replies begin and end, so a fault strikes an exact moment: the
command was not sent, the command was sent in part, the command ran and its reply was lost, the
reply came in part. Sync and async clients use it alike, for it runs in threads of its own.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from tests.servers.resp import command_name, frame_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from tests.servers.running import Address

# What clients send on their own when they connect; a fault strikes these only by name.
_SETTING_UP = {"AUTH", "CLIENT", "CLUSTER", "COMMAND", "HELLO", "READONLY", "SELECT"}


class Cut(Enum):
    """Where the connection is cut."""

    BEFORE = auto()  # the server sees nothing of the command
    IN_COMMAND = auto()  # the server gets its beginning, and so does not run it
    REPLY_LOST = auto()  # the server has run it; the client sees nothing of the reply
    IN_REPLY = auto()  # the server has run it; the client gets the beginning of the reply
    NEVER = auto()  # not at all: for a fault that only delays


@dataclass
class Fault:
    """What happens to the next commands that match.

    Args:
        cut: Where the connection is cut.
        command: The name of the commands it strikes; any that is not part of setting up a
            connection, when empty.
        times: How many commands it strikes, before it is used up.
        after_bytes: For IN_COMMAND and IN_REPLY: how much gets through; half by default.
        delay_seconds: How long the reply is held back first.
        then: Called when the server has answered, before the cut: what others do meanwhile.
        answer: An error that the client is given instead, as in "LOADING not yet"; the server
            sees nothing of the command.
    """

    cut: Cut
    command: str = ""
    times: int = 1
    after_bytes: int | None = None
    delay_seconds: float = 0
    then: Callable[[], object] | None = None
    answer: str = ""

    def strikes(self, command: str) -> bool:
        """Say whether `command` is one of those it is for."""
        return command == self.command if self.command else command not in _SETTING_UP

    def beginning(self, frame: bytes) -> bytes:
        """Give the part of `frame` that gets through; never all of it."""
        size = len(frame) // 2 if self.after_bytes is None else self.after_bytes
        return frame[: min(size, len(frame) - 1)]


class Proxy:
    """Stands before a server, or before all masters of a Cluster.

    Example:
        proxy.next(Cut.REPLY_LOST, command="EVALSHA")
        store.conversation("c").append("hi")        # redis-py sends it again
        assert proxy.count("EVALSHA") == 2
    """

    def __init__(self, upstreams: Iterable[Address]) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._seen: list[str] = []
        self._open: set[_Connection] = set()
        self._down = False
        self._doors = {upstream: _Door(self, upstream) for upstream in upstreams}

    def address(self, upstream: Address) -> Address:
        """Give the address that stands before `upstream`."""
        door = self._doors.get(upstream)
        return door.address if door else upstream

    @property
    def url(self) -> str:
        """The URL of the first door."""
        host, port = next(iter(self._doors.values())).address
        return f"redis://{host}:{port}"

    def next(  # noqa: PLR0913 - what a Fault takes
        self,
        cut: Cut,
        *,
        command: str = "",
        times: int = 1,
        after_bytes: int | None = None,
        delay_seconds: float = 0,
        then: Callable[[], object] | None = None,
        answer: str = "",
    ) -> None:
        """Arm a fault; see `Fault`. Faults strike in the order in which they were armed."""
        with self._lock:
            self._faults.append(
                Fault(cut, command, times, after_bytes, delay_seconds, then, answer)
            )

    def clear(self) -> None:
        """Forget the armed faults and the commands seen."""
        with self._lock:
            self._faults.clear()
            self._seen.clear()

    def go_down(self) -> None:
        """Cut every connection, and take no new one, until `come_up`."""
        with self._lock:
            self._down = True
            connections = list(self._open)
        for connection in connections:
            connection.cut()

    def come_up(self) -> None:
        """Take connections again."""
        self._down = False

    @property
    def seen(self) -> list[str]:
        """The names of the commands that clients sent, setting up left out."""
        with self._lock:
            return [name for name in self._seen if name not in _SETTING_UP]

    def count(self, command: str) -> int:
        """Count how often clients sent `command`, setting up included."""
        with self._lock:
            return self._seen.count(command)

    def close(self) -> None:
        """End the proxy and its threads."""
        for door in self._doors.values():
            door.close()
        self.go_down()
        for connection in list(self._open):
            connection.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # what the doors and connections call

    def admit(self, client: socket.socket, upstream: Address) -> None:
        if self._down:
            client.close()
            return
        try:
            server = socket.create_connection(upstream, timeout=5)
        except OSError:
            client.close()
            return
        connection = _Connection(self, client, server)
        with self._lock:
            self._open.add(connection)
        connection.start()

    def dismiss(self, connection: _Connection) -> None:
        with self._lock:
            self._open.discard(connection)

    def fault_for(self, command: str) -> Fault | None:
        with self._lock:
            self._seen.append(command)
            for fault in self._faults:
                if fault.strikes(command):
                    fault.times -= 1
                    if not fault.times:
                        self._faults.remove(fault)
                    return fault
        return None


class _Door(threading.Thread):
    """Listens on one port for one server."""

    def __init__(self, proxy: Proxy, upstream: Address) -> None:
        super().__init__(name=f"proxy-{upstream[1]}", daemon=True)
        self._proxy = proxy
        self._upstream = upstream
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._socket.getsockname()
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._socket.accept()
                self._proxy.admit(client, self._upstream)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.join()


class _CutHere(Exception):  # noqa: N818 (not an error: it ends a connection's loop)
    pass


@dataclass(eq=False)
class _Connection:
    """One client's connection and its twin to the server."""

    proxy: Proxy
    client: socket.socket
    server: socket.socket
    commands: bytearray = field(default_factory=bytearray)
    replies: bytearray = field(default_factory=bytearray)
    #: for each command whose reply is to come, what is to happen to the reply
    awaited: deque[Fault | None] = field(default_factory=deque)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="proxy-connection", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def cut(self) -> None:
        """End the connection from another thread."""
        for side in (self.client, self.server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        with suppress(OSError, _CutHere), self.client, self.server:
            while True:
                ready, _, _ = select.select([self.client, self.server], [], [])
                for side in ready:
                    data = side.recv(1 << 20)
                    if not data:
                        raise _CutHere
                    if side is self.client:
                        self.commands += data
                        self._pass_commands()
                    else:
                        self.replies += data
                        self._pass_replies()
        self.proxy.dismiss(self)

    def _pass_commands(self) -> None:
        while end := frame_end(self.commands):
            frame = bytes(self.commands[:end])
            del self.commands[:end]
            fault = self.proxy.fault_for(command_name(frame))
            if fault and fault.cut is Cut.BEFORE:
                raise _CutHere
            if fault and fault.cut is Cut.IN_COMMAND:
                self.server.sendall(fault.beginning(frame))
                raise _CutHere
            if fault and fault.answer:
                self.client.sendall(f"-{fault.answer}\r\n".encode())
                continue
            self.awaited.append(fault)
            self.server.sendall(frame)

    def _pass_replies(self) -> None:
        while end := frame_end(self.replies):
            frame = bytes(self.replies[:end])
            del self.replies[:end]
            is_push = frame.startswith(b">")
            fault = None if is_push or not self.awaited else self.awaited.popleft()
            if fault:
                time.sleep(fault.delay_seconds)
                if fault.then:
                    fault.then()
                if fault.cut is Cut.REPLY_LOST:
                    raise _CutHere
                if fault.cut is Cut.IN_REPLY:
                    self.client.sendall(fault.beginning(frame))
                    raise _CutHere
            self.client.sendall(self._redirected(frame))

    def _redirected(self, frame: bytes) -> bytes:
        """Make a redirection lead through the proxy; a client's `address_remap` leaves it out."""
        if not frame.startswith((b"-MOVED ", b"-ASK ")):
            return frame
        word, slot, address = frame.decode().split()
        host, _, port = address.rpartition(":")
        host, there = self.proxy.address((host, int(port)))
        return f"{word} {slot} {host}:{there}\r\n".encode()
