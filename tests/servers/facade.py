"""Makes a Store look like an AsyncStore, so that one test runs on both."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import AsyncStore, Store

# Each call runs in a thread, so that what a test does at once with asyncio.gather is done by
# threads on Store and by tasks on AsyncStore. Enough threads that none has to wait for another.
_THREADS = ThreadPoolExecutor(max_workers=64, thread_name_prefix="store")


# The classes of parts that not every test imports, with their twins.
_OTHERS: dict[type, type] = {}


def register(kind: type, twin: type) -> None:
    """Let views be made of a class that has an asyncio twin, beside those of `turnstore`."""
    _OTHERS[kind] = twin


def as_async(store: Store) -> AsyncStore:
    """Give a view of `store` with the methods of AsyncStore.

    What is a coroutine there is awaited here too; what is a plain call there is one here. The
    handles that it gives, and what `turn` gives, are such views as well.
    """
    return cast("AsyncStore", _Facade(store))


class _Facade:
    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        inner = self._inner
        twin = getattr(_twin(type(inner)), name, None)
        value = getattr(inner, name)
        if not callable(value):
            return value
        if inspect.iscoroutinefunction(twin):
            return _in_thread(value)

        @wraps(value)
        def call(*args: object, **kwargs: object) -> object:
            return _view(value(*args, **kwargs))

        return call

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_inner":
            object.__setattr__(self, name, value)
        else:
            setattr(self._inner, name, value)

    def __repr__(self) -> str:
        return f"as_async({self._inner!r})"

    async def __aenter__(self) -> object:
        return _view(await _in_thread(cast("Any", self._inner).__enter__)())

    async def __aexit__(self, *error: object) -> object:
        return await _in_thread(cast("Any", self._inner).__exit__)(*error)


def _view(value: object) -> object:
    return _Facade(value) if type(value) in _twins() or type(value) in _OTHERS else value


def inner(view: object) -> Any:
    """Give what a view stands for."""
    return view._inner if isinstance(view, _Facade) else view


def _twin(kind: type) -> type:
    return _OTHERS.get(kind) or _twins()[kind]


def _in_thread(function: Callable[..., object]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: object, **kwargs: object) -> object:
        run = partial(contextvars.copy_context().run, function, *args, **kwargs)
        return _view(await asyncio.get_running_loop().run_in_executor(_THREADS, run))

    return call


@cache
def _twins() -> dict[type, type]:
    import turnstore  # noqa: PLC0415 (see `new_store` in conftest.py)

    names = ("Store", "Conversation", "PendingTurn")
    return {getattr(turnstore, name): getattr(turnstore, f"Async{name}") for name in names}
