"""Conversations with questions whose evidence is known. Nothing of them is in the repository.

LoCoMo (CC BY-NC 4.0: for measuring only) is a JSON file with a list of conversations; REALTALK
is a folder with a JSON file for each. In both, a question names the turns that answer it.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open domain",
    4: "single-hop",
    5: "adversarial",
}
ADVERSARIAL = 5
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # nine of LoCoMo's are misspelt


@dataclass(frozen=True)
class Turn:
    """What one speaker said at one go."""

    id: str
    session: int
    speaker: str
    text: str
    photo: str
    time: dt.datetime

    def said(self) -> str:
        """The text that is embedded and searched."""
        if not self.speaker:
            return self.text
        photo = f" [shares a photo of {self.photo}]" if self.photo else ""
        return f'{self.speaker} said, "{self.text}"{photo}'


@dataclass(frozen=True)
class Question:
    """A question, and the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """The turns of two speakers over many sessions."""

    name: str
    turns: list[Turn]
    questions: list[Question]


def read(path: Path) -> list[Conversation]:
    """Read a LoCoMo file, or a folder of REALTALK."""
    if path.is_dir():
        return [
            _conversation(file.stem, value := json.loads(file.read_text()), value["qa"], _REALTALK)
            for file in sorted(path.glob("Chat_*.json"))
        ]
    return [
        _conversation(value["sample_id"], value["conversation"], value["qa"], _LOCOMO)
        for value in json.loads(path.read_text())
    ]


def paired(conversation: Conversation) -> Conversation:
    """Each turn with the other speaker's next one, as one text: what `Exchanges` stores."""
    pairs: list[Turn] = []
    place: dict[str, str] = {}
    waiting: Turn | None = None
    for turn in [*conversation.turns, None]:
        answers = (
            waiting is not None
            and turn is not None
            and turn.session == waiting.session
            and turn.speaker != waiting.speaker
        )
        if waiting is not None:
            both = [waiting.said(), turn.said()] if answers and turn else [waiting.said()]
            pairs.append(replace(waiting, text="\n".join(both), speaker="", photo=""))
            place[waiting.id] = waiting.id
            if answers and turn:
                place[turn.id] = waiting.id
        waiting = None if answers else turn
    return Conversation(conversation.name, pairs, _moved(conversation.questions, place))


def merged(conversations: list[Conversation]) -> Conversation:
    """All of them as the conversations of one owner, each question asked among all turns."""
    turns: list[Turn] = []
    questions: list[Question] = []
    for number, one in enumerate(conversations):
        place = {turn.id: f"{one.name} {turn.id}" for turn in one.turns}
        turns += [
            replace(turn, id=place[turn.id], session=turn.session + 1000 * number)
            for turn in one.turns
        ]
        questions += _moved(one.questions, place)
    return Conversation("all", turns, questions)


def _moved(questions: list[Question], place: dict[str, str]) -> list[Question]:
    return [
        replace(one, evidence=frozenset(place[id_] for id_ in one.evidence)) for one in questions
    ]


@dataclass(frozen=True)
class _Layout:
    text: str
    date: str

    def time(self, turn: dict[str, Any], session: str) -> dt.datetime:
        said = turn.get("date_time", session)
        return dt.datetime.strptime(said, self.date).replace(tzinfo=dt.UTC)


_LOCOMO = _Layout("text", "%I:%M %p on %d %B, %Y")
_REALTALK = _Layout("clean_text", "%d.%m.%Y, %H:%M:%S")


def _conversation(
    name: str, sessions: dict[str, Any], qa: list[dict[str, Any]], layout: _Layout
) -> Conversation:
    turns = list(_turns(sessions, layout))
    known = {turn.id for turn in turns}
    questions = []
    for one in qa:
        named = _EVIDENCE.findall(" ".join(one["evidence"]))
        evidence = frozenset(f"D{a}:{b}" for a, b in named) & known
        if evidence:
            questions.append(Question(one["question"], one["category"], evidence))
    return Conversation(name, turns, questions)


def _turns(sessions: dict[str, Any], layout: _Layout) -> Iterator[Turn]:
    numbers = sorted(int(found[1]) for name in sessions if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        date = sessions[f"session_{number}_date_time"]
        for turn in sessions[f"session_{number}"]:
            yield Turn(
                turn["dia_id"],
                number,
                turn["speaker"],
                turn[layout.text],
                turn.get("blip_caption") or "",
                layout.time(turn, date),
            )
