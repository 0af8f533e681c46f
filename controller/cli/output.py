"""Rows, printed as the user asked: aligned text in a pipe, a table on a terminal, JSON or YAML for programs."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

STYLES = {
    "True": "green", "False": "yellow", "Unknown": "red", "Warning": "yellow",
    "Admitted": "green", "Unclear": "yellow", "Releasing": "dim", "Destroying": "dim", "Gone": "dim",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One thing: its cells by column, more of them for the wide table, and what programs get."""

    cells: Mapping[str, str]
    record: Mapping[str, object] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)


def show(rows: Iterable[Row], form: str, *, nothing: str = "") -> None:
    """Print rows in one of options.FORMATS. `nothing`: what to say on stderr when a table would be empty."""
    rows = list(rows)
    if form in {"json", "yaml"}:
        show_record({"items": [row.record for row in rows]}, form)
    elif rows:
        table([{**row.cells, **(row.more if form == "wide" else {})} for row in rows])
    elif nothing:
        print(nothing, file=sys.stderr)


def show_record(record: object, form: str) -> None:
    """Print one value as JSON or YAML."""
    if form == "yaml":
        from controller.model.dump import dump_yaml

        print(dump_yaml(record), end="")
    else:
        print(json.dumps(record, indent=2, ensure_ascii=False))


def say(text: str, *, hang: int = 2) -> None:
    """Print a line; what does not fit a terminal goes on below, so many columns in. In a pipe it stays one line."""
    if sys.stdout.isatty():
        wide, indent = shutil.get_terminal_size().columns, " " * hang
        text = textwrap.fill(text, wide, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    print(text)


def table(cells: Sequence[Mapping[str, str]], *, indent: int = 0) -> None:
    """Print a table whose columns are the keys of the first row."""
    titles = list(cells[0]) if cells else []
    if sys.stdout.isatty():
        _on_terminal(titles, cells, indent)
    else:
        print(aligned(titles, [[row[title] for title in titles] for row in cells], indent=indent))


def aligned(titles: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int = 0) -> str:
    """Columns two spaces apart."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows))
    return "\n".join((" " * indent + line).rstrip() for line in lines)


def _on_terminal(titles: Sequence[str], cells: Sequence[Mapping[str, str]], indent: int) -> None:
    from rich.console import Console
    from rich.padding import Padding

    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(highlight=False, force_terminal=False if plain else None)
    console.print(Padding(rich_table(titles, cells, width=console.width - indent), (0, 0, 0, indent)))


def rich_table(titles: Sequence[str], cells: Sequence[Mapping[str, str]], *, width: int) -> "Table":
    """The same for a terminal: states are coloured; what does not fit moves together, then folds its widest column."""
    from rich.table import Table
    from rich.text import Text

    widths = {title: max(len(title), *(len(row[title]) for row in cells)) for title in titles}
    gap = 2 if sum(widths.values()) + 2 * (len(titles) - 1) <= width else 1
    made = Table(box=None, padding=(0, gap, 0, 0), header_style="bold", pad_edge=False)
    for title in titles:
        made.add_column(title, no_wrap=widths[title] < max(widths.values()), overflow="fold")
    for row in cells:
        made.add_row(*(Text(row[title], style=STYLES.get(row[title], "")) for title in titles))
    return made
