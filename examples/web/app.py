"""The application that each worker runs: pages, a session, and conversations as a dependency.

A worker keeps nothing between two requests but its connections. So whichever of them a request
comes to, it finds the same conversation in Redis.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Cookie, Depends, FastAPI, HTTPException, Request, Response
from fastapi import Path as PathParam
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

from turnstore import AsyncConversation, AsyncStore
from turnstore.errors import TurnstoreError

from .answering import answer

STATIC = Path(__file__).with_name("static")
TURNS = 200  # what a conversation holds, and the page shows
_A_YEAR = 365 * 24 * 3600
_SESSION = re.compile(r"[\w-]{43}")
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
async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
    """Open what a worker needs, once, in the event loop in which it is used."""
    url = os.environ["REDIS_URL"]
    async with (
        AsyncStore.from_url(url, name="web-example", max_messages=2 * TURNS) as store,
        AsyncOpenAI(timeout=60) as openai,
    ):
        yield {"store": store, "openai": openai}


app = FastAPI(lifespan=lifespan)
app.mount("/static", StaticFiles(directory=STATIC))


def user(session: Annotated[str, Cookie()] = "") -> str:
    """Say who asks: here it is a secret that only this browser has.

    Real authentication goes here, and nowhere else: check the user's token, and give the user's id.
    """
    if not _SESSION.fullmatch(session):
        raise HTTPException(401, "There is no session; reload the page.")
    return session


def conversation(
    request: Request,
    owner: Annotated[str, Depends(user)],
    chat_id: Annotated[str, PathParam(pattern="^[A-Za-z0-9_-]{22}$")],
) -> AsyncConversation:
    """Give the handle of a conversation; no I/O.

    It belongs to its owner. So what somebody else's session finds under the same address is
    another conversation, and an empty one.
    """
    store: AsyncStore = request.state.store
    return store.conversation(chat_id, owner=owner)


Chat = Annotated[AsyncConversation, Depends(conversation)]


class Message(BaseModel):
    """What a browser sends: the text, and a key of its own that it repeats with each attempt."""

    text: str = Field(min_length=1, max_length=8000)
    key: str = Field(pattern="^[A-Za-z0-9_-]{16,64}$")


@app.get("/")
def begin() -> Response:
    """Begin a conversation, under an id that nobody can guess."""
    return RedirectResponse(f"/c/{secrets.token_urlsafe(16)}", 303)


@app.get("/c/{chat_id}")
def page(request: Request, session: Annotated[str, Cookie()] = "") -> Response:
    """Give the page, the same for each conversation, and a session to who has none."""
    response = FileResponse(STATIC / "index.html", headers=_HEADERS)
    if not _SESSION.fullmatch(session):
        response.set_cookie(
            "session",
            secrets.token_urlsafe(32),
            max_age=_A_YEAR,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
    return response


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
async def ask(request: Request, chat: Chat, message: Message) -> AsyncIterator[ServerSentEvent]:
    """Answer a message, piece by piece."""
    async for kind, text in answer(chat, request.state.openai, message.text, message.key):
        yield ServerSentEvent(event=kind, data=text)


@app.exception_handler(RequestValidationError)
async def no_message(_: Request, __: Exception) -> Response:
    """Refuse what the page does not send, without giving it back."""
    return JSONResponse({"detail": "This is not a message."}, 422)


@app.exception_handler(TurnstoreError)
async def no_memory(_: Request, __: Exception) -> Response:
    """Say that the memory failed: that must not look like an empty conversation."""
    return JSONResponse({"detail": "The conversation cannot be read at the moment."}, 503)
