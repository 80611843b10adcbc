"""The programs in examples/ run as they are, and leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

EXAMPLES = Path(__file__).parents[2] / "examples"

SAID = {
    "direct.py": """\
Hello!                I was sent 1 messages.
Do you remember me?   I was sent 3 messages.
repeated              stored twice: False, 3 turns
stale                 refused: True
undone                Order 7, please
branches              2 and 3 turns
kept for              0:0""",
    "wrap_openai.py": """\
you    My name is Ada.
model  I will remember that your name is Ada.
you    What is my name?
model  Your name is Ada.
you    How is the weather in Paris?
tool   weather({"city": "Paris"})
model  The tool says: {"sky": "clear", "degrees": 21}
you    And what is my name?
model  Your name is Ada.
turn 1: user, assistant
turn 2: user, assistant
turn 3: user, assistant, tool, assistant
turn 4: user, assistant
""",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SAID.keys()


@pytest.mark.parametrize("own_server", [False, True], ids=["REDIS_URL", "embedded"])
@pytest.mark.parametrize("name", SAID)
def test_it_runs(name: str, redis_url: str, own_server: bool) -> None:  # noqa: FBT001
    unwanted = {"REDIS_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "EXAMPLE_MODEL"}
    env = {name: value for name, value in os.environ.items() if name not in unwanted}
    env |= {"NO_PROXY": "*"} | ({} if own_server else {"REDIS_URL": redis_url})

    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(SAID[name])
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
