"""What the guides say of the frameworks, and why they do things as they do."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client
from django.urls import path
from fastapi import Depends, FastAPI
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

WHOSE: ContextVar[str] = ContextVar("whose", default="nobody's")


async def from_async() -> None:
    WHOSE.set("ada's")


def from_sync() -> None:
    WHOSE.set("ada's")


@pytest.mark.parametrize(
    "dependency, seen", [(from_async, "ada's"), (from_sync, "nobody's")], ids=["async", "sync"]
)
def test_fastapi_shows_what_async_dependencies_set(dependency: Any, seen: str) -> None:
    app = FastAPI()

    @app.get("/", dependencies=[Depends(dependency)])
    async def endpoint() -> StreamingResponse:
        async def pieces() -> AsyncIterator[str]:
            yield WHOSE.get()

        return StreamingResponse(pieces())

    assert TestClient(app).get("/").text == seen


@pytest.mark.parametrize(
    "scope, order",
    [("request", ["first", "last", "end"]), ("function", ["end", "first", "last"])],
)
def test_fastapi_ends_a_dependency_after_the_stream_or_before_it(
    scope: Any, order: list[str]
) -> None:
    app, happened = FastAPI(), []

    async def dependency() -> AsyncIterator[None]:
        yield
        happened.append("end")

    @app.get("/", dependencies=[Depends(dependency, scope=scope)])
    async def endpoint() -> StreamingResponse:
        async def pieces() -> AsyncIterator[str]:
            for one in ("first", "last"):
                happened.append(one)
                yield one

        return StreamingResponse(pieces())

    TestClient(app).get("/")
    assert happened == order


# Django


def test_django_streams_when_the_middleware_has_ended(
    django_urls: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def middleware(get_response: Any) -> Any:
        def wrapped(request: HttpRequest) -> Any:
            token = WHOSE.set("ada's")
            try:
                return get_response(request)
            finally:
                WHOSE.reset(token)

        return wrapped

    def view(_: HttpRequest) -> StreamingHttpResponse:
        seen_in_view = WHOSE.get()

        def pieces() -> Iterator[str]:
            yield f"{seen_in_view}, {WHOSE.get()}"

        return StreamingHttpResponse(pieces())

    django_urls.__dict__.update(urlpatterns=[path("", view)], middleware=middleware)
    monkeypatch.setattr(settings, "MIDDLEWARE", [f"{django_urls.__name__}.middleware"])
    response: Any = Client().get("/")
    assert response.getvalue() == b"ada's, nobody's"


def test_an_async_view_under_wsgi_gets_a_loop_for_each_request(django_urls: ModuleType) -> None:
    """So an AsyncStore cannot be used there: it belongs to one."""
    loops: list[object] = []

    async def view(_: HttpRequest) -> HttpResponse:
        loops.append(asyncio.get_running_loop())
        return HttpResponse()

    django_urls.__dict__.update(urlpatterns=[path("", view)])
    with ThreadPoolExecutor(1) as thread:  # where no loop runs; in this one, the browser's may
        list(thread.map(Client().get, ["/", "/"]))
    assert loops[0] is not loops[1]
