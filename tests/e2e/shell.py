"""The command line as a user runs it: a process of its own in a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRAPHMEM = str(shutil.which("graphmem", path=Path(sys.executable).parent))

TURNS = [
    {"text": f"Turn number {n}.", "speaker": "Mara", "occurred_at": f"2025-03-{n:02d}T10:00:00Z"} for n in range(1, 11)
]
TRIPLES = """subject,relation,object,valid_from,valid_to,edge_type
Maya Chen,works at,Initech,2024-01-01,,
Maya Chen,works at,Globex,2025-06-01,,
Maya Chen,knows,Ravi Menon,2024-02-01,,
Outage,caused,Rollback,2024-03-01,,causal
"""


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Folder:
    """A folder in which commands are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def write_lines(self, name: str, *values: object) -> str:
        lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
        return self.write(name, "".join(f"{line}\n" for line in lines))


class Shell(Folder):
    """Runs `graphmem` in one folder."""

    def run(self, *arguments: str, stdin: str | bytes = b"", **variables: str) -> Ran:
        done = subprocess.run(
            [GRAPHMEM, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONUTF8": "1", **variables},
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
