"""Writes the reference pages from docstrings, the headers of the Lua scripts and the parser.

python tests/checks/reference.py            names the pages that are out of date
python tests/checks/reference.py --write    writes them
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import turnstore
from turnstore import _element, _keys, _scripts, cli, context, errors, facts, server, testing
from turnstore.facts import _owner, working_memory
from turnstore.facts._storing import record as _record

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"

_NOTE = "<!-- Written by `python tests/checks/reference.py --write`; change the source instead. -->"
_SECTION = re.compile(r"^([A-Z]\w+):$")
_ITEM = re.compile(r"^(\*{0,2}\w[\w, ]*): (.*)$")
_LISTS = {"Args", "Raises", "Attributes"}
_ATTRIBUTE = re.compile(r'^ +self\.([a-z]\w*)\b.* = .*\n +"""([^"]+)"""', re.MULTILINE)
_WIDE = 88

_KEY_LINE = re.compile(r"^  \d+ +(\w+) +(\w+) +(.+)$")
_MARKS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
_ORDER = {
    "The store": ["Store", "Conversation"],
    "A turn in the making": ["PendingTurn", "Lease"],
    "A function with a memory": ["remember"],
    "How much is read": ["Window"],
    "What is answered": ["Appended", "History", "Turn", "TurnPage", "Stat"],
    "What an owner has": ["ConversationInfo", "ConversationPage", "Erasure"],
}
_CONTEXT = [
    "Context",
    "Summary",
    "Topics",
    "Boundary",
    "Retrieval",
    "Source",
    "Query",
    "Recalled",
    "After",
    "SavedTurn",
    "Rewrite",
    "Entities",
    "simple_entities",
    "TokenCounter",
    "Processor",
]
# The modules of frameworks: the extra each needs, its guide, and its classes with their files.
# They are read and not imported, since the frameworks may not be here.
INTEGRATIONS = {
    "openai_agents": ("agents", "openai-agents", {"AgentsSession": "openai_agents"}),
    "langchain": (
        "langchain",
        "langchain",
        {"MemoryMiddleware": "langchain", "ChatHistory": "_langchain_history"},
    ),
    "pydantic_ai": (
        "pydantic-ai",
        "pydantic-ai",
        {"Memory": "pydantic_ai", "ConversationStore": "_pydantic_ai_store"},
    ),
    "agent_framework": (
        "agent-framework",
        "agent-framework",
        {"HistoryProvider": "agent_framework"},
    ),
    "llama_index": ("llama-index", "llama-index", {"ChatStore": "llama_index"}),
    "railtracks": ("railtracks", "railtracks", {"ConversationMemory": "railtracks"}),
}
# Public names among turnstore's own modules, and nobody else's.
INTERNAL = {
    "Context.finish",
    "Context.prepare",
    "History.elements",
    "History.has_pieces",
    "History.pieces",
    "Retrieval.ask",
    "Summary.carried",
    "Summary.question",
    "Window.dropped",
}


def api() -> str:
    """The page of what users import."""
    about = (
        "What stands before [Contexts](#contexts) is imported from `turnstore`, the rest from the "
        "module that its section names. `AsyncStore`, `AsyncConversation` "
        "and `AsyncPendingTurn` have the same names and signatures as `Store`, `Conversation` and "
        "`PendingTurn`; what sends a command is awaited, and a `with` is an `async with`. "
        "[Errors](errors.md) have a page of their own.\n\n"
        "`Message` is `dict[str, Any]`: the provider's JSON. `Input` is what is taken for "
        "messages: text for a user message, a dict, an SDK's message object, or several of these."
    )
    lines = ["# API", "", _NOTE, "", about]
    for title, names in _ORDER.items():
        lines += ["", f"## {title}"]
        lines += _entries(turnstore, names)
    lines += ["", "## Contexts", "", "Imported from `turnstore.context`. The guides: "]
    lines[-1] += "[limit the context](../guides/limit-context.md), "
    lines[-1] += "[summaries](../guides/summaries.md), [topics](../guides/topics.md), "
    lines[-1] += "[retrieval](../guides/retrieval.md). `FRAME`, `REWRITE_PROMPT`, "
    lines[-1] += "`SUMMARY_HEADING` and `SUMMARY_PROMPT` are the default texts."
    lines += _entries(context, _CONTEXT)
    lines += ["", "## A model server for tests", "", "Imported from `turnstore.testing`."]
    lines += _entries(testing, testing.__all__)
    lines += ["", "## An embedded server", "", "Imported from `turnstore.server`."]
    lines += _entries(server, server.__all__)
    return "\n".join([*lines, "", *_integrations()]).rstrip("\n") + "\n"


def _integrations() -> list[str]:
    lines = ["## Frameworks", "", "Each has a module of its own, and needs the extra named there."]
    for module, (extra, guide, classes) in INTEGRATIONS.items():
        for name, file in classes.items():
            path = ROOT / f"src/turnstore/integrations/{file}.py"
            parsed = ast.parse(path.read_text())
            found = next(one for one in parsed.body if getattr(one, "name", "") == name)
            assert isinstance(found, ast.ClassDef)
            lines += ["", f"### {name}", "", f"From `turnstore.integrations.{module}`, extra "]
            lines[-1] += f"`{extra}`. [Guide](../guides/clients/{guide}.md)."
            lines += ["", *_sections(ast.get_docstring(found) or "")]
    return lines


def facts_page() -> str:
    """The page of long-term facts."""
    lines = ["# Facts", "", _NOTE, "", *_prose(inspect.cleandoc(facts.__doc__ or "").split("\n"))]
    lines += ["Imported from `turnstore.facts`. Classes whose names begin with `Async` have the "]
    lines[-1] += "same names and signatures as those without, and are awaited. The guide: "
    lines[-1] += "[keep facts of your users](../guides/facts.md). What lies in Redis: "
    lines[-1] += "[keys and scripts of facts](facts-keys-and-scripts.md)."
    texts = [f"`{name}`" for name in facts.__all__ if name.isupper()]
    lines[-1] += f" Default texts are {', '.join(texts)}."
    shown = [one for one in facts.__all__ if not (one.startswith("Async") or one.isupper())]
    lines += _entries(facts, shown)
    return "\n".join(lines).rstrip("\n") + "\n"


def error_page() -> str:
    """The page of errors."""
    lines = ["# Errors", "", _NOTE, "", *_prose(inspect.cleandoc(errors.__doc__ or "").split("\n"))]
    for name in errors.__all__:
        lines += ["", f"## {name}", "", *_docstring(getattr(errors, name))]
    return "\n".join(lines) + "\n"


def keys_and_scripts() -> str:
    """The page of what lies in Redis, and of the scripts that put it there."""
    headers = {name: _header(name) for name in _scripts.names() if not _is_of_facts(name)}
    lines = ["# Keys and scripts", "", _NOTE, "", "## Names of keys", ""]
    lines += _prose(inspect.cleandoc(_keys.__doc__ or "").split("\n")[2:])
    lines += ["", "| part | type | what it holds | scripts |", "|---|---|---|---|"]
    for (part, kind), users in sorted(_keys_of(headers).items()):
        linked = ", ".join(f"[{name}](#{name})" for name in users)
        # What a script does with it stands behind the semicolon, in its own header.
        what = users["append"].partition(";")[0] if "append" in users else min(users.values())
        lines.append(f"| `{part}` | {kind} | {what} | {linked} |")
    lines += ["", "Those of facts have [a page of their own](facts-keys-and-scripts.md)."]
    lines += ["", "Reading is a plain `LRANGE`, without a script.", "", "## An element", ""]
    lines += _prose(inspect.cleandoc(_element.__doc__ or "").split("\n"))
    head = _scripts.load("stat").source.partition("-- The head:")[2]
    comment = ("-- The head:" + head).partition("\nlocal ")[0]
    lines += ["", "## The head", "", "```text"]
    lines += [line.removeprefix("-- ").removeprefix("--") for line in comment.split("\n")]
    lines += ["```", "", "## Scripts", ""]
    lines += ["Each is one file in [`lua/`](../../lua/README.md), and this is its header. All"]
    lines += [
        "arguments are text; `int` is a decimal number. A script is sent by its SHA-1, and in"
    ]
    lines += ["full where the server does not know it."]
    for name, header in headers.items():
        lines += ["", f"### {name}", "", "```text", header, "```"]
    return "\n".join(lines) + "\n"


def facts_keys_and_scripts() -> str:
    """The page of what lies in Redis of facts."""
    headers = {name: _header(name) for name in _scripts.names() if _is_of_facts(name)}
    lines = ["# Keys and scripts of facts", "", _NOTE, "", "## Names of keys", ""]
    lines += _prose(inspect.cleandoc(_owner.__doc__ or "").split("\n")[2:])
    lines += ["", "| key | type | what it holds | scripts |", "|---|---|---|---|"]
    for (part, kind), users in sorted(_keys_of(headers).items()):
        linked = ", ".join(f"[{name}](#{name})" for name in users)
        lines.append(f"| `{part}` | {kind} | {min(users.values())} | {linked} |")
    lines += ["", "## A fact", ""]
    lines += _prose(inspect.cleandoc(_record.__doc__ or "").split("\n")[2:])
    for part, title in (("facts_postings", "The words"), ("facts_vectors", "The vectors")):
        text = (_scripts._folder() / "lib" / f"{part}.lua").read_text("utf-8")
        lines += ["", f"## {title}", "", "```text"]
        comment = text.partition("\nlocal ")[0].split("\n")
        lines += [line.removeprefix("-- ").removeprefix("--") for line in comment] + ["```"]
    lines += ["", "## Scripts", "", "As [those of conversations](keys-and-scripts.md#scripts)."]
    for name, header in headers.items():
        lines += ["", f"### {name}", "", "```text", header, "```"]
    return "\n".join(lines) + "\n"


def _is_of_facts(name: str) -> bool:
    return name.startswith(("facts_", "memory_"))


def command_line() -> str:
    """The page of the command line."""
    parser = cli.parser()
    lines = ["# Command line", "", _NOTE, "", parser.description or "", "", parser.epilog or ""]
    commands = next(
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    for name, command in commands.choices.items():
        lines += ["", f"## turnstore {name}", "", command.description or "", ""]
        lines += ["| argument | |", "|---|---|"]
        for action in command._actions[1:]:  # the first is --help
            names = ", ".join(action.option_strings) or str(action.metavar)
            value = f" {action.metavar or action.dest.upper()}" if action.nargs is None else ""
            shown = names + value if action.option_strings else names
            needed = " (required)" if action.required and action.option_strings else ""
            lines.append(f"| `{shown}` | {action.help}{needed} |")
    return "\n".join(lines) + "\n"


def _header(name: str) -> str:
    return _scripts.load(name).source.partition("--[[\n")[2].partition("\n]]")[0]


def _keys_of(headers: dict[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    """Give for each key, by name and type, what the header of each script says of it."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name, header in headers.items():
        section = header.partition("KEYS\n")[2].partition("\n\n")[0]
        for line in section.split("\n"):
            key = _KEY_LINE.match(line)
            if key:
                found.setdefault((key[1], key[2]), {})[name] = key[3]
    return found


def _entries(module: ModuleType, names: Iterable[str]) -> list[str]:
    things = [(getattr(module, name), name) for name in names]
    entries = [(_class if inspect.isclass(one) else _function)(one, name) for one, name in things]
    return [line for entry in entries for line in entry]


def _class(thing: type, name: str) -> list[str]:
    short = name.rpartition(".")[2]
    lines = ["", f"### {short}", ""]
    if not issubclass(thing, Exception) and short in _CONSTRUCTED:
        lines += _signature(thing, name)
    lines += _docstring(thing)
    # What users do not import themselves stands where they meet it.
    bases = [
        base
        for base in thing.__mro__[1:]
        if base.__module__.startswith("turnstore.") and "._" in base.__module__
    ]
    attributes = [one for base in bases if "__init__" in vars(base) for one in _attributes(base)]
    if attributes:
        lines += ["", "**Attributes**", "", *attributes]
    members = {name: value for one in (thing, *bases) for name, value in vars(one).items()}
    for member, value in members.items():
        if member.startswith("_") or f"{short}.{member}" in INTERNAL:
            continue
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(value, property):
            lines += ["", f"#### {short}.{member}", "", *_docstring(value.fget)]
        elif inspect.isfunction(plain):
            lines += ["", f"#### {short}.{member}", ""]
            lines += _signature(plain, member)
            lines += _docstring(plain)
    return lines


def _function(thing: Any, name: str) -> list[str]:
    return ["", f"### {name}", "", *_signature(thing, name), *_docstring(thing)]


def _attributes(thing: type) -> list[str]:
    """The attributes that `__init__` sets and says something of."""
    found = _ATTRIBUTE.findall(inspect.getsource(vars(thing)["__init__"]))
    return [f"- `{name}`: {' '.join(text.split())}" for name, text in found]


# What a user makes; the others are answered.
_CONSTRUCTED = {
    "Block",
    "Context",
    "Decay",
    "EmbeddedServer",
    "Entities",
    "Exchanges",
    "Extraction",
    "Facts",
    "Lease",
    "MemoryTools",
    "ModelServer",
    "NewFact",
    "Plain",
    "Processor",
    "Ranking",
    "Recall",
    "Reply",
    "Retrieval",
    "Rewrite",
    "Search",
    "Store",
    "Summary",
    "TokenCounter",
    "ToolCall",
    "Topics",
    "VectorSet",
    "Window",
    "WorkingMemory",
}


def _signature(thing: Any, name: str) -> list[str]:
    signature = inspect.signature(thing)
    shown = []
    star = False
    for parameter in signature.parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        mark = _MARKS.get(parameter.kind.name, "")
        star = star or mark == "*"
        text = mark + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        shown.append(text)
    back = ""
    if not inspect.isclass(thing) and signature.return_annotation is not signature.empty:
        back = f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){back}"
    if len(line) <= _WIDE:
        return ["```text", line, "```", ""]
    return ["```text", f"{name}(", *(f"    {one}," for one in shown), f"){back}", "```", ""]


def _default(value: Any) -> str:
    if inspect.isfunction(value):
        return "…" if value.__name__.startswith("_") else value.__name__
    named = {**vars(context), **vars(facts), **vars(working_memory)}
    for name, text in named.items():  # what has a name is shown by it
        if name.isupper() and isinstance(text, str | tuple) and text == value:
            return name
    return "…" if "factory" in repr(value) else repr(value).replace("datetime.", "")


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.strip("\"'").replace("_io.", "")


def _docstring(thing: Any) -> list[str]:
    return _sections(inspect.cleandoc(thing.__doc__ or ""))


def _sections(docstring: str) -> list[str]:
    """A docstring in Markdown: its sections become headings, its arguments a list."""
    lines: list[str] = []
    section, body = "", list[str]()
    for line in [*docstring.split("\n"), "End:"]:
        title = _SECTION.match(line)
        prose = bool(section and line) and not line.startswith(" ")  # it ends a section, too
        if not title and not prose:
            body.append(line)
            continue
        text = inspect.cleandoc("\n".join(body)).split("\n") if section else body
        lines += _section(section, text)
        section, body = (title[1], []) if title else ("", [line])
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _section(name: str, body: list[str]) -> list[str]:
    if not name:
        return _prose(body)
    if name == "Example":
        return ["**Example**", "", "```pycon", *body, "```", ""]
    if name not in _LISTS:
        return [f"**{name}**: {' '.join(' '.join(body).split())}", ""]
    items: list[str] = []
    for line in body:
        item = _ITEM.match(line)
        if item:
            names = ", ".join(f"`{one.strip()}`" for one in item[1].split(","))
            items.append(f"- {names}: {item[2]}")
        elif line.strip():
            items[-1] += f" {line.strip()}"
    return [f"**{name}**", "", *items, ""]


def _prose(body: list[str]) -> list[str]:
    """Paragraphs; what stands indented after `::` is shown as it is."""
    text = "\n".join(body).strip("\n").replace("``", "`")
    lines: list[str] = []
    for number, part in enumerate(re.split(r"\n?^::\n\n|:\n\n(?=    )", text, flags=re.MULTILINE)):
        if number == 0:
            lines += part.strip("\n").split("\n")
            continue
        shown = re.match(r"(?:(?:    .*)?\n|    .*$)*", part)
        block = shown[0] if shown else ""
        lines += ["", "```text", *inspect.cleandoc(block).split("\n"), "```", ""]
        lines += part[len(block) :].strip("\n").split("\n")
    return [*lines, ""]


WRITERS = {
    "api.md": api,
    "errors.md": error_page,
    "facts.md": facts_page,
    "facts-keys-and-scripts.md": facts_keys_and_scripts,
    "keys-and-scripts.md": keys_and_scripts,
    "command-line.md": command_line,
}


def outdated() -> dict[Path, str]:
    """Give the pages that do not say what the source says, with what they should say."""
    pages = {PAGES / name: re.sub(r"\n{3,}", "\n\n", write()) for name, write in WRITERS.items()}
    return {
        page: text for page, text in pages.items() if not page.exists() or page.read_text() != text
    }


def main() -> int:
    """Name the pages, or write them; give the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true")
    pages = outdated()
    if options.parse_args().write:
        for page, text in pages.items():
            page.write_text(text)
        return 0
    for page in pages:
        print(f"{page.relative_to(ROOT)} is out of date: python tests/checks/reference.py --write")
    return bool(pages)


if __name__ == "__main__":
    sys.exit(main())
