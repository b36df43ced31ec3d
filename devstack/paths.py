"""Where the dev stack finds the project and keeps its own files."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
DATA = PROJECT / "var"
