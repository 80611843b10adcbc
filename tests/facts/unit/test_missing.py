"""Facts without numpy, which comes with an extra."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
sys.modules["numpy"] = None  # as if it were not installed
import turnstore
try:
    import turnstore.facts
except ImportError as error:
    print(error)
"""


def test_the_extra_is_named_where_numpy_is_missing() -> None:
    command = [sys.executable, "-W", "error", "-c", _CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "turnstore.facts needs numpy: pip install '.[facts]' in a clone\n"
