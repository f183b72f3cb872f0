"""The parts of a Markdown file that a reader copies or follows."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Their samples are run, and the commands, flags and files that they name are looked up.
DOCUMENTS = [
    "README.md", "docs/USAGE.md", "docs/RECIPES.md", "docs/CONFIGURATION.md",
    "docs/OPERATIONS.md", "CONTRIBUTING.md", "SECURITY.md"]


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block of code."""
    place: str  # "README.md:53"
    language: str
    text: str

    @property
    def title(self):
        return self.text.splitlines()[0].strip()


@dataclasses.dataclass
class Step:
    """A command of a console block, and the lines that are shown below it."""
    command: str
    shown: list


def blocks(name):
    found, start, lines = [], None, []
    for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif start is None:
            start, language, lines = number, line[3:], []
        else:
            found.append(Block(f"{name}:{start}", language, "\n".join(lines) + "\n"))
            start = None
    assert start is None, f"{name}:{start}: a block that does not end"
    return found


def steps(block):
    """The commands of a console block; a backslash continues one."""
    found = []
    for line in block.text.splitlines():
        if found and found[-1].command.endswith("\\"):
            found[-1].command += "\n" + line
        elif line.startswith("$ "):
            found.append(Step(line[2:], []))
        else:
            assert found, f"{block.place}: shows an answer before a command"
            found[-1].shown.append(line)
    return found


def prose(name):
    """The text without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", (ROOT / name).read_text(), flags=re.M | re.S)


def inline_code(name):
    return re.findall(r"`([^`]+)`", prose(name))


def links(name):
    return re.findall(r"\]\(([^)#]+)[^)]*\)", prose(name))
