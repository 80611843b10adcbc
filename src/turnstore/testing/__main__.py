"""`python -m turnstore.testing`: the model server by itself, beside an application."""

from __future__ import annotations

import argparse
import sys
import threading
from contextlib import suppress

from ._server import ModelServer

__all__ = ["main"]


def main() -> int:
    """Serve until Ctrl-C.

    Returns:
        The exit status: 0 after Ctrl-C, 1 where the port is taken, 2 for wrong arguments.
    """
    parser = argparse.ArgumentParser(
        prog="python -m turnstore.testing",
        description="A model server for tests, until Ctrl-C. It prints what the clients of OpenAI, "
        "Anthropic and Google take from the environment.",
    )
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; default a free one")
    parser.add_argument(
        "--pause", type=float, default=0, metavar="SECONDS", help="between two chunks of a stream"
    )
    options = parser.parse_args()
    try:
        server = ModelServer(port=options.port, pause=options.pause).start()
    except (OSError, OverflowError) as error:
        sys.stderr.write(f"port {options.port}: {error}\n")
        return 1
    with server, suppress(KeyboardInterrupt):
        sys.stdout.write(
            f"export OPENAI_BASE_URL={server.base_url} OPENAI_API_KEY=none\n"
            f"export ANTHROPIC_BASE_URL={server.url} ANTHROPIC_API_KEY=none\n"
            f"export GOOGLE_GEMINI_BASE_URL={server.url} GEMINI_API_KEY=none\n"
        )
        sys.stdout.flush()
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
