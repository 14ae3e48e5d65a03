#!/usr/bin/python3
"""Writes manual pages and shell completion of what --help says, so that neither can be out of date.

usage: help_pages.py DIRECTORY VERSION EMULATOR ROCEMU ROCEMUD VIPL_PINGPONG

DIRECTORY gets man/*.1, bash/rocemu, zsh/_rocemu and fish/rocemu.fish. EMULATOR runs the three programs
where they are of another architecture; it may be empty. The texts have the form of Boost.Program_options:
blocks between blank lines, options indented by two, what they mean in a column. What has no such form
is an error.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

# The values of an argument that --help names in prose. Each must be in the option's text.
VALUES = {
    "POLICY": ["continue", "stop"],
    "LEVEL": ["trace", "debug", "info", "warn", "error", "off"],
    "TOPOLOGY": ["pci", "flat"],
}
SCENARIO_NAMES = "rocemu scenarios --json 2>/dev/null | sed -n 's/^ *\"name\": \"\\(.*\\)\",*$/\\1/p'"


@dataclass
class Option:
    names: list  # "-h", "--help"
    argument: str  # "FILE"; empty for a switch
    text: str

    @property
    def long(self):
        return self.names[-1]


@dataclass
class Page:
    """A help text: blocks in their order, each a kind and what it has."""
    name: str
    summary: str
    blocks: list = field(default_factory=list)
    usage: list = field(default_factory=list)

    @property
    def options(self):
        return [option for kind, value in self.blocks if kind == "options" for option in value]


def parse_options(lines):
    """The options of a block. The column of the texts is where lines without an option begin."""
    indents = [len(line) - len(line.lstrip()) for line in lines if not line.startswith("  -")]
    gaps = [match.end() for line in lines if (match := re.match(r"  -.*?\S {2,}(?=\S)", line))]
    column = min(indents or gaps)
    options = []
    for line in lines:
        head, text = line[:column].strip(), line[column:].strip()
        if not line.startswith("  -"):
            options[-1].text = f"{options[-1].text} {text}".strip()
            continue
        match = re.fullmatch(r"(?:(-\w) \[ (--[\w-]+) \]|(--[\w-]+))(?: (.+))?", head)
        if not match:
            raise SystemExit(f"help_pages.py: this is no option: {line}")
        options.append(Option([name for name in match.groups()[:3] if name], match[4] or "", text))
    for option in options:
        for value in VALUES.get(option.argument, []):
            if value not in option.text:
                raise SystemExit(f"help_pages.py: '{option.long}' does not name '{value}'; see VALUES")
    return options


def parse(name, summary, text):
    page = Page(name, summary)
    for block in re.split(r"\n{2,}", text.strip("\n")):
        lines = block.split("\n")
        if re.match("usage:", lines[0], re.I):
            page.usage += [re.sub(r"^(usage:| )\s*", "", line, flags=re.I) for line in lines]
            continue
        while lines:
            indented = lines[0].startswith("  ")
            end = next((i for i, line in enumerate(lines) if line.startswith("  ") != indented),
                       len(lines))
            part, lines = lines[:end], lines[end:]
            if not indented:
                page.blocks.append(("text", " ".join(part)))
            elif part[0].startswith("  -"):
                page.blocks.append(("options", parse_options(part)))
            else:
                page.blocks.append(("literal", [line[2:] for line in part]))
    if not page.usage:
        raise SystemExit(f"help_pages.py: the help of {name} has no 'usage:'")
    return page


# ---- Manual pages ---------------------------------------------------------------------------

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith(".") else text


def manual(page, version, others):
    lines = [f'.TH {page.name.upper()} 1 "" "rocemu {version}" "User Commands"',
             ".SH NAME", f"{page.name} \\- {roff(page.summary)}", ".SH SYNOPSIS", ".nf"]
    lines += [roff(line) for line in page.usage] + [".fi", ".SH DESCRIPTION"]
    section = "DESCRIPTION"

    def enter(heading):
        nonlocal section
        if section != heading:
            lines.append(f".SH {heading}")
            section = heading

    following = [kind for kind, _ in page.blocks[1:]] + [""]
    for (kind, value), next_kind in zip(page.blocks, following):
        if kind == "options":
            enter("OPTIONS")
            for option in value:
                names = ", ".join(f"\\fB{roff(name)}\\fR" for name in option.names)
                argument = f" \\fI{roff(option.argument)}\\fR" if option.argument else ""
                lines += [".TP", names + argument, roff(option.text)]
        elif kind == "literal":
            lines += [".PP", ".EX", *(roff(line) for line in value), ".EE"]
        elif re.fullmatch(r"[A-Z][a-z ]+:", value) and next_kind == "options":
            enter("OPTIONS")
            if value != "Options:":
                lines.append(f".SS {value[:-1]}")
        elif re.fullmatch(r"[A-Z][a-z ]+:", value):
            heading = value[:-1].upper()
            enter({"EXAMPLE": "EXAMPLES", "TRY": "EXAMPLES"}.get(heading, heading))
        elif value.startswith("Exit status: "):
            enter("EXIT STATUS")
            text = value.removeprefix("Exit status: ")
            lines.append(roff(text[0].upper() + text[1:]))
        else:
            if section not in ("DESCRIPTION", "NOTES"):
                enter("NOTES")
            lines += [".PP", roff(value)]
    lines.append(".SH SEE ALSO")
    lines += [f".BR {roff(name)} (1)" + ("," if name != others[-1] else "") for name in others]
    lines += [".PP", "The documents that the texts name as docs/NAME.md are in share/doc/rocemu/docs of "
              "the installation."]
    return "\n".join(lines) + "\n"


# ---- Completion -----------------------------------------------------------------------------

def wants(argument):
    """Returns the completion of an argument with this name: files, directories, scenarios, and words."""
    parts = set(re.split(r"[|\[\]=,. ]+", argument))
    return {"files": bool(parts & {"FILE", "FILES", "TOPOLOGY"}),
            "directories": bool(parts & {"DIR", "DIR1", "DIR2"}),
            "scenarios": "NAME" in parts and "FILE" in parts,
            "words": VALUES.get(argument, [])}


def wants_of_arguments(page):
    """The same for the words behind a command; also whether a program may stand there."""
    usage = [re.sub(r"--\w+ \w+", "", line).replace("[--dir DIR]", "") for line in page.usage]
    words = set(re.split(r"[^A-Za-z0-9]+", " ".join(usage)))
    return {"files": "FILE" in words, "directories": bool(words & {"DIR", "DIR1", "DIR2"}),
            "scenarios": "NAME" in words, "program": "COMMAND" in words,
            "words": [word for word in ("port", "up", "down", "removed") if f" {word}" in " ".join(usage)
                      or f"|{word}" in " ".join(usage)] if page.name == "set" else []}


def bash(pages):
    def replies(want, word='"$word"'):
        lines = []
        words = shlex.quote(" ".join(want["words"])) if want["words"] else ""
        if want["scenarios"]:
            words = '"' + " ".join([*want["words"], "$(_rocemu_scenarios)"]) + '"'
        if words:
            lines.append(f"COMPREPLY+=($(compgen -W {words} -- {word}))")
        if want["files"]:
            lines.append(f"COMPREPLY+=($(compgen -f -- {word})); compopt -o filenames 2>/dev/null")
        elif want["directories"]:
            lines.append(f"COMPREPLY+=($(compgen -d -- {word})); compopt -o filenames 2>/dev/null")
        if want.get("program"):
            lines.append(f"COMPREPLY+=($(compgen -c -f -- {word}))")
        return lines

    out = ["# Completion of rocemu for bash. Made of what --help says.",
           "_rocemu_scenarios() {", f"  {SCENARIO_NAMES}", "}",
           "_rocemu() {",
           "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i",
           "  local IFS=$' \\t\\n'",
           "  COMPREPLY=()",
           "  # Behind -- stands a program, which completes its own arguments.",
           "  for ((i = 2; i < COMP_CWORD; i++)); do",
           "    if [[ ${COMP_WORDS[i]} == -- && ${COMP_WORDS[1]} == @(run|doctor) ]]; then",
           "      if declare -F _command_offset >/dev/null; then",
           "        _command_offset $((i + 1))",
           "      elif ((COMP_CWORD == i + 1)); then",
           "        COMPREPLY=($(compgen -c -f -- \"$word\"))",
           "      else",
           "        COMPREPLY=($(compgen -f -- \"$word\"))",
           "      fi",
           "      return",
           "    fi",
           "  done",
           "  if ((COMP_CWORD == 1)); then",
           f"    COMPREPLY=($(compgen -W '{' '.join(pages)} help --help --version' -- \"$word\"))",
           "    return",
           "  fi",
           "  case ${COMP_WORDS[1]} in",
           "    help)",
           f"      COMPREPLY=($(compgen -W '{' '.join(pages)}' -- \"$word\")) ;;"]
    for name, page in pages.items():
        out += [f"    {name})"]
        with_argument = [option for option in page.options if option.argument]
        if with_argument:
            out += ["      case $before in"]
            for option in with_argument:
                lines = replies(wants(option.argument)) or [":"]
                out += [f"        {option.long})", *(f"          {line}" for line in lines),
                        "          return ;;"]
            out += ["      esac"]
        names = " ".join(option.long for option in page.options)
        if "-- " in page.usage[0]:
            names += " --"
        out += ["      if [[ $word == -* ]]; then",
                f"        COMPREPLY=($(compgen -W '{(names + ' --help --help-all').strip()}' -- \"$word\"))",
                "        return",
                "      fi"]
        want = wants_of_arguments(page)
        if name != "run":
            out += [f"      {line}" for line in replies(want)]
        out += ["      ;;"]
    return "\n".join([*out, "  esac", "}", "complete -F _rocemu rocemu"]) + "\n"


def zsh(pages):
    def quoted(text):
        return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")

    def action(want):
        actions = [f"({' '.join(want['words'])})"] if want["words"] else []
        if want["scenarios"]:
            actions = ["_rocemu_scenarios"]
        elif not actions and want["files"]:
            actions = ["_files"]
        elif not actions and want["directories"]:
            actions = ["_files -/"]
        elif want.get("program"):
            actions = ["_rocemu_program"]
        return actions[0] if actions else " "

    out = ["#compdef rocemu", "# Completion of rocemu for zsh. Made of what --help says.",
           "_rocemu_scenarios() {",
           f"  local -a names=(${{(f)\"$({SCENARIO_NAMES})\"}})",
           "  _alternative \"scenarios:scenario:($names)\" 'files:file:_files'", "}",
           "_rocemu_program() {",
           "  _alternative 'commands:command:_command_names -e' 'files:file:_files'", "}",
           "_rocemu() {", "  local -a commands=("]
    out += [f"    '{name}:{quoted(page.summary)}'" for name, page in pages.items()]
    out += ["    'help:explain a command'", "  )",
            "  if ((CURRENT == 2)); then", "    _describe command commands",
            "    _arguments '--help[explain rocemu]' '--version[print the version]'", "    return", "  fi",
            "  local command=$words[2]",
            "  shift words", "  ((CURRENT--))",
            "  case $command in", "    help) _describe command commands ;;"]
    for name, page in pages.items():
        out += [f"    {name})", "      _arguments -S \\"]
        for option in page.options:
            text = quoted(option.text if len(option.text) < 70 else option.text[:67] + "...")
            repeat = "*" if "may be repeated" in option.text else ""
            argument = f":{quoted(option.argument)}:{action(wants(option.argument))}" \
                if option.argument else ""
            out += [f"        '{repeat}{option.long}[{text}]{argument}' \\"]
        out += ["        '--help[explain this command]' \\",
                "        '--help-all[explain this command and all of its options]' \\"]
        want = wants_of_arguments(page)
        if name == "run":
            out += ["        '*::program:_normal' ;;"]
        else:
            out += [f"        '*:argument:{action(want)}' ;;"]
    return "\n".join([*out, "  esac", "}", "_rocemu \"$@\""]) + "\n"


def fish(pages):
    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def flags(want):
        words = list(want["words"])
        if want["scenarios"]:
            words.append("(__rocemu_scenarios)")
        if want.get("program"):
            words.append("(__fish_complete_command)")
        if want["directories"]:
            words.append("(__fish_complete_directories)")
        result = f" -a {quoted(' '.join(words))}" if words else ""
        return result + (" -F" if want["files"] or want.get("program") else " -f")

    out = ["# Completion of rocemu for fish. Made of what --help says.",
           "function __rocemu_scenarios", f"    {SCENARIO_NAMES}", "end", "complete -c rocemu -f"]
    for name, page in [*pages.items(), ("help", None)]:
        summary = page.summary if page else "explain a command"
        out.append(f"complete -c rocemu -n __fish_use_subcommand -a {name} -d {quoted(summary)}")
    out.append(f"complete -c rocemu -n '__fish_seen_subcommand_from help' -a {quoted(' '.join(pages))}")
    for name, page in pages.items():
        seen = quoted(f"__fish_seen_subcommand_from {name}; and not __fish_seen_subcommand_from --")
        for option in page.options:
            argument = " -r" + flags(wants(option.argument)) if option.argument else ""
            text = option.text if len(option.text) < 70 else option.text[:67] + "..."
            out.append(f"complete -c rocemu -n {seen} -l {option.long[2:]}{argument} -d {quoted(text)}")
        want = wants_of_arguments(page)
        if name == "run":
            out.append(f"complete -c rocemu -n '__fish_seen_subcommand_from run' -a "
                       "'(__fish_complete_subcommand --fcs-skip=2)'")
        elif any(want.values()):
            out.append(f"complete -c rocemu -n {seen}{flags(want)}")
    return "\n".join(out) + "\n"


# ---------------------------------------------------------------------------------------------

def main():
    directory, version, emulator, rocemu, rocemud, pingpong = sys.argv[1:]
    # The build tree's programs print the same text in every environment.
    environment = {**os.environ, "LC_ALL": "C", "COLUMNS": "80"}

    def said_by(*command):
        return subprocess.run([*shlex.split(emulator), *command], check=True, capture_output=True,
                              text=True, env=environment).stdout

    general = said_by(rocemu, "--help")
    commands = dict(re.findall(r"^  (\w+) +(\w.*)$", general.split("usage:")[1].split("\n\n")[1], re.M))
    commands.pop("help")
    pages = {name: parse(name, summary, said_by(rocemu, name, "--help-all"))
             for name, summary in commands.items()}
    whole = parse("rocemu", re.match(r"rocemu \S+: (.*)", general)[1], general.split("\n\n", 1)[1])
    daemon = parse("rocemud", "the NIC of rocemu, a daemon that emulates RoCEv2 devices",
                   said_by(rocemud, "--help"))
    vipl = parse("vipl_pingpong", "time a message to and fro by the library of the Virtual Interface "
                 "Architecture", said_by(pingpong, "--help"))

    root = pathlib.Path(directory)
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("man", "bash", "zsh", "fish"):
        (root / folder).mkdir(parents=True)
    names = ["rocemu", *(f"rocemu-{name}" for name in pages), "rocemud"]
    for page in [whole, *pages.values(), daemon, vipl]:
        if page.name in pages:
            page = Page(f"rocemu-{page.name}", page.summary, page.blocks, page.usage)
        others = ["rocemu"] if page is vipl else [name for name in names if name != page.name]
        (root / "man" / f"{page.name}.1").write_text(manual(page, version, others))
    (root / "bash" / "rocemu").write_text(bash(pages))
    (root / "zsh" / "_rocemu").write_text(zsh(pages))
    (root / "fish" / "rocemu.fish").write_text(fish(pages))


if __name__ == "__main__":
    main()
