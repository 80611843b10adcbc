"""The model that a summary asks: a function of the caller's, or a client of an SDK.

A client is known by what it has, so that no SDK is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from turnstore._calls import Ask

from ._common import Asking, is_async, name_of

__all__ = [
    "ask_client",
    "check_model",
    "check_sync_model",
    "is_async_method",
    "is_async_model",
    "question",
]

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


def question(ask: Any, model: str | None, prompt: str, deadline: float) -> Asking[Any]:
    """Ask a function or a client that was checked, and give what it says."""
    endpoint = _endpoint(ask)
    if endpoint is None:
        return (yield Ask(ask, (prompt,), deadline))
    options = {"model": model, **endpoint.options(prompt)}
    return endpoint.text((yield ask_client(ask, endpoint.create, options, deadline)))


def ask_client(
    client: Any, create: Callable[..., Any], options: dict[str, Any], deadline: float | None
) -> Ask:
    """Make the question to a method of a client, async or not, which has its whole reply."""
    function = _acreated if is_async_method(create) else _created
    return Ask(function, (create, options), deadline, client)


def check_sync_model(what: str, ask: Any) -> None:
    """Refuse for a sync store what says that it is async; `check_model` was before it.

    Raises:
        TypeError: It is async.
    """
    if is_async_model(ask):
        name = name_of(ask)
        msg = f"{name} is async, and this store is not; Async{what} of an AsyncStore takes it"
        raise TypeError(msg)


def is_async_model(ask: Any) -> bool:
    """Tell whether a function or a client that was checked says that it is async."""
    endpoint = _endpoint(ask)
    return is_async(ask) if endpoint is None else is_async_method(endpoint.create)


def is_async_method(create: Callable[..., Any]) -> bool:
    """Tell whether a method of a client says that it is async, as SDKs decorate them."""
    return inspect.iscoroutinefunction(inspect.unwrap(create))


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


def _created(create: Callable[..., Any], options: dict[str, Any]) -> Any:
    return create(**options)


async def _acreated(create: Callable[..., Any], options: dict[str, Any]) -> Any:
    return await create(**options)
