"""A Cluster of three masters, started from one binary."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.servers.running import Clustered
from tests.waiting import wait_until
from turnstore.server import EmbeddedServer, free_port

if TYPE_CHECKING:
    from pathlib import Path

_BOUNDS = (0, 5461, 10923, 16384)  # the slots of the first master are 0 to 5460, and so on


def start_cluster(binary: Path, **config: str) -> Clustered:
    """Start three masters with these options, share the slots, and wait until all three agree."""
    with ExitStack() as stack:
        buses = [free_port() for _ in range(3)]
        nodes = [stack.enter_context(_node(binary, bus, config)) for bus in buses]
        for number, node in enumerate(nodes):
            _ask(node, f"CLUSTER SET-CONFIG-EPOCH {number + 1}")
            _ask(node, f"CLUSTER ADDSLOTSRANGE {_BOUNDS[number]} {_BOUNDS[number + 1] - 1}")
            _ask(node, f"CLUSTER MEET 127.0.0.1 {nodes[0].port} {buses[0]}")
        wait_until(lambda: all(map(_knows_all, nodes)), seconds=30)
        addresses = [("127.0.0.1", node.port) for node in nodes]
        return Clustered(addresses, stop=stack.pop_all().close)


def _node(binary: Path, bus: int, more: dict[str, str]) -> EmbeddedServer:
    config = {
        **more,
        "cluster-enabled": "yes",
        "cluster-port": str(bus),
        "cluster-announce-ip": "127.0.0.1",
    }
    return EmbeddedServer(binary=binary, config=config)


def _knows_all(node: EmbeddedServer) -> bool:
    info = _ask(node, "CLUSTER INFO")
    return "cluster_state:ok" in info and "cluster_known_nodes:3" in info


def _ask(node: EmbeddedServer, command: str) -> str:
    """Send one command to one node; a Cluster's client would refuse to before it is joined."""
    with socket.create_connection(("127.0.0.1", node.port), timeout=5) as connection:
        connection.sendall(f"{command}\r\n".encode())
        reply = connection.recv(65_536).decode()
    assert not reply.startswith("-"), f"{command}: {reply}"
    return reply
