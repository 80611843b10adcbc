"""The model that a summary asks: a function of the caller's, or a client of an SDK.

A client is known by what it has, so that no SDK is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from turnstore._calls import Ask

from ._common import is_async

__all__ = ["check_model", "check_sync_model", "is_async_model", "question"]

# Anthropic wants to be told; a summary has a few hundred words.
_MOST_ANSWERED = 4096


class _Endpoint(NamedTuple):
    """Where a client is asked.

    Attributes:
        create: Makes one call.
        options: Its arguments, but for the model's name, for a prompt.
        text: Gives the text of a reply.
    """

    create: Callable[..., Any]
    options: Callable[[str], dict[str, Any]]
    text: Callable[[Any], Any]


def check_model(what: str, ask: Any, model: str | None) -> None:
    """Refuse what cannot be asked.

    Args:
        what: Who asks, as in "Summary".
        ask: The function or the client.
        model: The name of the model, which a client needs.

    Raises:
        TypeError: It is neither, its model has no name, or it has a memory.
    """
    # Its calls would be turns of a conversation: a summary of one would be a part of it.
    if any(kind.__module__.startswith("turnstore.clients.") for kind in type(ask).__mro__):
        msg = (
            f"{what} asks a client without a memory: what it asks would be stored in the "
            "conversation; give the client that was wrapped"
        )
        raise TypeError(msg)
    if _endpoint(ask) is None:
        if not callable(ask):
            msg = f"{what} asks a function or a client, not {type(ask).__name__}"
            raise TypeError(msg)
    elif not model:
        msg = f'{what}(client) needs the name of the model too, as in model="gpt-x"'
        raise TypeError(msg)


def question(ask: Any, model: str | None, prompt: str, deadline: float) -> Ask:
    """Make the question to a function or a client that was checked."""
    endpoint = _endpoint(ask)
    if endpoint is None:
        return Ask(ask, (prompt,), deadline)
    options = {"model": model, **endpoint.options(prompt)}
    complete = _acomplete if _is_async(endpoint) else _complete
    return Ask(complete, (endpoint.create, options, endpoint.text), deadline, ask)


def check_sync_model(what: str, ask: Any) -> None:
    """Refuse for a sync store what says that it is async; `check_model` was before it.

    Raises:
        TypeError: It is async.
    """
    if is_async_model(ask):
        name = getattr(ask, "__qualname__", type(ask).__name__)
        msg = f"{name} is async, and this store is not; Async{what} of an AsyncStore takes it"
        raise TypeError(msg)


def is_async_model(ask: Any) -> bool:
    """Tell whether a function or a client that was checked says that it is async."""
    endpoint = _endpoint(ask)
    return is_async(ask) if endpoint is None else _is_async(endpoint)


def _is_async(endpoint: _Endpoint) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(endpoint.create))


def _endpoint(ask: Any) -> _Endpoint | None:
    if hasattr(ask, "chat"):
        create = ask.chat.completions.create
        return _Endpoint(create, _messages, lambda reply: reply.choices[0].message.content)
    if hasattr(getattr(ask, "messages", None), "create"):
        return _Endpoint(ask.messages.create, _anthropic_messages, _anthropic_text)
    if hasattr(getattr(ask, "models", None), "generate_content"):
        create = ask.models.generate_content
        return _Endpoint(create, lambda prompt: {"contents": prompt}, lambda reply: reply.text)
    return None


def _messages(prompt: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}]}


def _anthropic_messages(prompt: str) -> dict[str, Any]:
    return {"max_tokens": _MOST_ANSWERED, **_messages(prompt)}


def _anthropic_text(reply: Any) -> str:
    return "".join(block.text for block in reply.content if block.type == "text")


def _complete(
    create: Callable[..., Any], options: dict[str, Any], text: Callable[[Any], Any]
) -> Any:
    return text(create(**options))


async def _acomplete(
    create: Callable[..., Any], options: dict[str, Any], text: Callable[[Any], Any]
) -> Any:
    return text(await create(**options))
