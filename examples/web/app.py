"""The application that each worker runs: pages, a user, and conversations as a dependency.

A worker keeps nothing between two requests but its connections. So whichever of them a request
comes to, it finds the same conversations in Redis.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote

from fastapi import Cookie, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as PathParam
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from openai import AsyncOpenAI
from pydantic import BaseModel, Field, StringConstraints

from turnstore import AsyncConversation, AsyncStore, Erasure
from turnstore.errors import TurnstoreError

from .answering import Event, answer
from .memory import KEPT, context_of

STATIC = Path(__file__).with_name("static")
TURNS = 200  # what a conversation holds, and the page shows
CHATS = 20  # on a page of the list
# What comes to nothing before the model answers, by its reason.
STATUS = {"busy": 429, "memory": 503, "model": 502, "erased": 409, "refused": 422}
_LEFT = 499  # of no standard, and nobody is there who could see it
_LONGEST_NAME = 64
_A_YEAR = 365 * 24 * 3600
_HEADERS = {
    # Even if text of the model came to be HTML, nothing in it could run, load or send anything.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[dict[str, Any]]:
    """Open what a worker needs, once, in the event loop in which it is used."""
    url = os.environ["REDIS_URL"]
    async with (
        AsyncStore.from_url(url, name="web-example", ttl=KEPT, max_messages=2 * TURNS) as store,
        AsyncOpenAI(timeout=60) as openai,
    ):
        yield {"store": store, "openai": openai, "context": context_of(store)}


app = FastAPI(lifespan=lifespan)
app.mount("/static", StaticFiles(directory=STATIC))


def user(user: Annotated[str, Cookie()] = "") -> str:
    """Say who asks: the name that was typed into the page, and is believed.

    Real authentication goes here, and nowhere else: check the user's token, and give the user's id.
    """
    name = unquote(user).strip()  # as it is when it is said
    if not 0 < len(name) <= _LONGEST_NAME:
        raise HTTPException(401, "Nobody has said who you are; reload the page.")
    return name


User = Annotated[str, Depends(user)]


def conversation(
    request: Request,
    owner: User,
    chat_id: Annotated[str, PathParam(pattern="^[A-Za-z0-9_-]{22}$")],
) -> AsyncConversation:
    """Give the handle of a conversation; no I/O.

    It belongs to its owner. So what somebody else finds under the same address is another
    conversation, and an empty one.
    """
    store: AsyncStore = request.state.store
    return store.conversation(chat_id, owner=owner)


Chat = Annotated[AsyncConversation, Depends(conversation)]


class Name(BaseModel):
    """Who somebody says to be."""

    name: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST_NAME)
    ]


class Message(BaseModel):
    """What a browser sends: the text, and a key of its own that it repeats with each attempt."""

    text: str = Field(min_length=1, max_length=8000)
    key: str = Field(pattern="^[A-Za-z0-9_-]{16,64}$")


T = TypeVar("T")


async def unless_left(request: Request, result: Awaitable[T]) -> T:
    """Wait for a result as long as the browser does: FastAPI looks no earlier than it answers."""
    doing = asyncio.ensure_future(result)
    leaving = asyncio.ensure_future(request.receive())  # the body was read; no more can come
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise HTTPException(_LEFT, "The browser has left.")
    finally:
        doing.cancel()
        leaving.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def answering(
    request: Request, chat: Chat, message: Message
) -> AsyncGenerator[AsyncIterator[Event]]:
    """Begin an answer, and close it when the request is over, however that ends.

    What fails before the model answers has a status, which comes too late inside the stream. Where
    a browser leaves, FastAPI drops the stream's generator where it stands, and Python may close it
    much later: the model's stream is closed here, at once.
    """
    openai, context = request.state.openai, request.state.context
    async with aclosing(answer(chat, openai, context, message.text, message.key)) as events:
        kind, text = await unless_left(request, anext(events))
        if kind in STATUS:
            raise HTTPException(STATUS[kind], text)
        yield _all_of((kind, text), events)


async def _all_of(first: Event, rest: AsyncIterator[Event]) -> AsyncIterator[Event]:
    yield first
    async for event in rest:
        yield event


@app.get("/")
def begin() -> Response:
    """Begin a conversation, under an id that nobody can guess."""
    return RedirectResponse(f"/c/{secrets.token_urlsafe(16)}", 303)


@app.get("/c/{chat_id}")
def page() -> Response:
    """Give the page, the same for each conversation."""
    return FileResponse(STATIC / "index.html", headers=_HEADERS)


@app.get("/me")
def me(owner: User) -> Name:
    """Say who asks."""
    return Name(name=owner)


@app.post("/me")
def sign_in(request: Request, who: Name) -> Response:
    """Believe somebody."""
    response = Response(status_code=204)
    response.set_cookie(
        "user",
        quote(who.name, safe=""),
        max_age=_A_YEAR,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


@app.delete("/me")
async def forget(request: Request, owner: User) -> Response:
    """Delete all that there is of a user, and give the receipt."""
    store: AsyncStore = request.state.store
    return await _receipt(store.erase(owner, verify=True))


async def _receipt(erasing: Awaitable[Erasure]) -> Response:
    try:
        return JSONResponse(asdict(await erasing))
    except TurnstoreError:
        return JSONResponse({"detail": "Not all of it could be deleted. Please try again."}, 503)


@app.get("/chats")
async def chats(
    request: Request, owner: User, before: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """Give a page of a user's chats, those that were written to last first."""
    store: AsyncStore = request.state.store
    found = await store.conversations(owner, CHATS, before=before)
    listed = [{"id": info.id, "title": info.title} for info in found]
    return JSONResponse({"user": owner, "chats": listed, "older": found.cursor})


@app.get("/c/{chat_id}/turns")
async def turns(request: Request, chat: Chat) -> Response:
    """Give the turns, or 304 to a tab that has seen the newest: it asks every two seconds."""
    known = request.headers.get("If-None-Match")
    if known == f'"{(await chat.stat()).revision}"':
        return Response(status_code=304)
    found = await chat.turns(TURNS)
    return JSONResponse(
        [{"id": turn.id, "messages": turn.messages} for turn in found],
        headers={"ETag": f'"{found.revision}"', "Cache-Control": "no-store"},
    )


@app.post("/c/{chat_id}/turns", response_class=EventSourceResponse)
async def ask(
    events: Annotated[AsyncIterator[Event], Depends(answering)],
) -> AsyncIterator[ServerSentEvent]:
    """Answer a message, piece by piece."""
    async for kind, text in events:
        yield ServerSentEvent(event=kind, data=text)


@app.delete("/c/{chat_id}")
async def delete(chat: Chat) -> Response:
    """Delete a chat with all that was remembered of it, and give the receipt."""
    return await _receipt(chat.erase())


@app.exception_handler(RequestValidationError)
async def no_message(_: Request, __: Exception) -> Response:
    """Refuse what the page does not send, without giving it back."""
    return JSONResponse({"detail": "This is nothing that the page sends."}, 422)


@app.exception_handler(TurnstoreError)
async def no_memory(_: Request, __: Exception) -> Response:
    """Say that the memory failed: that must not look like an empty conversation."""
    return JSONResponse({"detail": "The conversation cannot be read at the moment."}, 503)
