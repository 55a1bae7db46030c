"""As much of cmd.exe as Makefiles say; other lines, which make on Windows starts without it, go to sh."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

UNIX = ("cat", "cp", "mkdir", "mv", "printf", "rm")


def place(word: str) -> Path:
    """Return the path of a word in quotes, which has no slash: cmd takes that for an option."""
    assert "/" not in word, word
    return Path(word.strip('"').replace("\\", "/"))


def run(text: str) -> int:
    """Do what a line says and return its status."""
    text = text.replace("2>nul", "").replace("> nul", "").strip()
    if found := re.fullmatch(r'(>+) ("[^"]+") echo[ .](.*)', text):
        with place(found[2]).open("a" if found[1] == ">>" else "w", encoding="utf-8") as file:
            file.write(found[3] + "\n")
    elif found := re.fullmatch(r'if not exist ("[^"]+") mkdir ("[^"]+")', text):
        place(found[2]).mkdir(parents=True, exist_ok=place(found[1]).exists())
    elif found := re.fullmatch(r'if exist ("[^"]+") rmdir /s /q ("[^"]+")', text):
        shutil.rmtree(place(found[2]), ignore_errors=not place(found[1]).exists())
    elif found := re.fullmatch(r'move /y ("[^"]+") ("[^"]+")', text):
        place(found[1]).replace(place(found[2]))
    elif found := re.fullmatch(r'type ("[^"]+")', text):
        print(place(found[1]).read_text(encoding="utf-8") if place(found[1]).is_file() else "")
    elif found := re.fullmatch(r"echo (.*)", text):
        print(found[1])
    else:
        assert text.split()[0] not in (*UNIX, "if", "move", "type", ">"), text
        return subprocess.run(["sh", "-c", text], check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(next(filter(None, map(run, re.split("& (?=>)", sys.argv[-1]))), 0))
