"""Start the chat: `python -m examples.web`, from the root of the repository.

It starts what is missing: a Redis of its own where REDIS_URL is not set, and a small scripted model
where neither OPENAI_BASE_URL nor OPENAI_API_KEY is (else set EXAMPLE_MODEL to a model of theirs).
Ctrl-C or SIGTERM ends all of it, and nothing is kept of such a Redis.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack

import uvicorn

from turnstore.server import EmbeddedServer
from turnstore.testing import ModelServer

_PAUSE = 0.06  # seconds between two words of the scripted model, so that a person sees the stream


def main() -> None:
    """Start everything, and end with it."""
    parser = argparse.ArgumentParser(prog="python -m examples.web", description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=3, help="processes, at least 2")
    options = parser.parse_args()
    if options.workers < 2:  # noqa: PLR2004 - uvicorn supervises from two on
        parser.error("this is about several workers: at least 2")

    with ExitStack() as stack:
        redis, model = "the Redis at REDIS_URL", "the provider that the environment names"
        if not os.environ.get("REDIS_URL"):
            redis = "a Redis of its own"
            os.environ["REDIS_URL"] = stack.enter_context(EmbeddedServer()).url
        if not os.environ.get("OPENAI_BASE_URL") and not os.environ.get("OPENAI_API_KEY"):
            model = "a scripted model"
            scripted = stack.enter_context(ModelServer(pause=_PAUSE))
            os.environ |= {"OPENAI_BASE_URL": scripted.base_url, "OPENAI_API_KEY": "none-is-needed"}
        print(f"{options.workers} workers share {redis}, and ask {model}.")
        print(f"Open http://127.0.0.1:{options.port} when they have started.", flush=True)
        uvicorn.run(
            f"{__package__}.app:app",
            port=options.port,
            workers=options.workers,
            access_log=False,
            timeout_graceful_shutdown=3,  # an answer that takes longer is cancelled
        )
    print("Stopped.")


if __name__ == "__main__":
    main()
