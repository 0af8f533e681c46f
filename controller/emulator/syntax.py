"""The grammar of the emulated shell: text to a list of simple commands, and words to what they expand to.

A small part of POSIX sh: quotes, variables, && || ; & and newlines, redirections to files. Called by shell.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t]|\\\n)+)"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<dup>2>&1|1>&2|>&2)"
    r"|(?P<redirect>2>>|2>|1>|>>|>|<)"
    r"|(?P<op>&&|\|\||;|\n|&)"
    r"|(?P<word>(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|\$\{[^}]*\}|[^\s'\"\\;&|<>()`])+)",
    re.DOTALL,
)
_PIECE = re.compile(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)|((?:\$\{[^}]*\}|[^'\"\\])+)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*|[?$!#])(?::?-([^}]*))?\}|([A-Za-z_]\w*|[?$!#]))")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class SyntaxFault(Exception):  # noqa: N818  the shell's own word is "Syntax error"
    """Text that this shell cannot run."""


@dataclass(slots=True)
class Command:
    """One simple command: raw words, redirections (operator, raw word), and what joins it to the one before."""

    words: list[str] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)
    joined_by: str = ";"
    background: bool = False


def parse(text: str) -> list[Command]:
    """Split text into commands, in order.

    Raises:
        SyntaxFault: naming what was unexpected.
    """
    commands = [Command()]
    position, target = 0, ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SyntaxFault(f'Syntax error: "{text[position]}" unexpected')
        position, kind, piece = match.end(), match.lastgroup, match.group()
        command = commands[-1]
        if kind == "word":
            if target:
                command.redirects.append((target, piece))
                target = ""
            else:
                command.words.append(piece)
        elif kind == "redirect":
            target = piece
        elif kind == "dup":
            command.redirects.append((piece, ""))
        elif kind == "op":
            command.background = piece == "&"
            commands.append(Command(joined_by=piece if piece in ("&&", "||") else ";"))
    if target:
        raise SyntaxFault("Syntax error: end of file unexpected")
    return [command for command in commands if command.words or command.redirects]


def is_assignment(word: str) -> bool:
    """Tell whether a raw word is NAME=value."""
    return _ASSIGNMENT.match(word) is not None


def expand(word: str, variables: Mapping[str, str], *, split: bool = True) -> list[str]:
    """Return the words that a raw word becomes: none, one, or (unquoted variables with blanks) several."""
    text, quoted = "", False
    for single, double, escaped, bare in _PIECE.findall(word):
        if bare:
            home = not text and not quoted and (bare == "~" or bare.startswith("~/"))
            text += _substitute(f"$HOME{bare[1:]}" if home else bare, variables)
        elif escaped:
            text += escaped
        elif double:
            quoted = True
            text += re.sub(r'\\(["\\$`])', r"\1", _substitute(double, variables))
        else:
            quoted = True
            text += single
    if quoted or not split or "$" not in word:
        return [text]
    return text.split()


def _substitute(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda m: variables.get(m[1] or m[3]) or m[2] or "", text)
