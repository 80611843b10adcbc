"""For the tests of applications: a model server that needs no network, no key and no model.

`ModelServer` speaks OpenAI's protocol, Anthropic's and Gemini's over HTTP, so the real packages
talk to it, with their retries, their streams and their errors. It answers from the conversation
that it is sent, always the same, and does whatever a test scripts: tool calls, errors, streams
that break. `embed` is an embedder that needs nothing, either.
"""

from ._desk import Request
from ._embedding import embed
from ._replies import Reply, ToolCall
from ._server import ModelServer

__all__ = ["ModelServer", "Reply", "Request", "ToolCall", "embed"]
