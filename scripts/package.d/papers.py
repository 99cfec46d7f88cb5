#!/usr/bin/env python3
"""Writes what Debian's package needs beside the program: copyright, changelog.Debian, third-party.gz (the licences of what is
linked in), and lintian's overrides.

    papers.py FOLDER [MAINTAINER]      the maintainer is Cargo.toml's unless one is named

The date is SOURCE_DATE_EPOCH. Exit codes: 0 done, 1 failed, 2 usage.
"""

import email.utils
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OVERRIDES = Path(__file__).resolve().parent / "overrides"
UPLOT = ROOT / "src/report/page/uplot"
LICENCE_NAMES = ("license", "licence", "copying", "notice", "unlicense")
REVISION = 1  # cargo-deb's default.


def metadata():
    """The package and the graph of what it is made of, for this machine."""
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    triple = next(line.split()[1] for line in host.splitlines() if line.startswith("host:"))
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)


def linked(graph):
    """The packages that are linked into the program, in order: neither tools of the build nor macros."""
    packages = {package["id"]: package for package in graph["packages"]}
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    root = graph["resolve"]["root"]
    found, ahead = set(), [root]
    while ahead:
        for dependency in nodes[ahead.pop()]["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if is_normal and not is_macro and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                ahead.append(dependency["pkg"])
    return sorted((packages[one] for one in found), key=lambda package: (package["name"], package["version"]))


def licence_files(package):
    """The texts that a package comes with; the shorter licence where it leaves the choice."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(LICENCE_NAMES))
    chosen = [path for path in files if "mit" in path.name.lower()] or files
    return chosen + [path for path in files if path.name.lower().startswith("notice") and path not in chosen]


def third_party(graph):
    packages = linked(graph)
    version = re.search(r"\(v([0-9.]+)\)", (UPLOT / "uPlot.iife.min.js").read_text(encoding="utf-8")).group(1)
    texts = {(UPLOT / "LICENSE").read_text(encoding="utf-8").strip(): [f"uPlot {version}"]}
    lines = ["What is linked into lat-probe beside its own code. The Rust standard library is MIT or Apache-2.0 as well,",
             "by the Rust project.", "", f"uPlot {version}: MIT (in the pages of `lat-probe report`)"]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        files = licence_files(package)
        lines.append(f"{name}: {package['license'] or 'see its file'}"
                     + ("" if files else f" (no text in the crate; by {', '.join(package['authors']) or 'its authors'})"))
        for path in files:
            texts.setdefault(path.read_text(encoding="utf-8", errors="replace").strip(), []).append(name)
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        lines += ["", "-" * 78, ", ".join(names) + ":", "", text]
    return "\n".join(lines) + "\n"


def copyright_file():
    """Debian's form. It has the text of MIT; Debian's systems have that of Apache-2.0, which must not be repeated."""
    text = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8")
    owner = next(line for line in text.splitlines() if line.startswith("Copyright (c) ")).removeprefix("Copyright (c) ")
    body = text.split(owner, 1)[1].strip()
    indented = "\n".join(f" {line}" if line.strip() else " ." for line in body.splitlines())
    return f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: lat-probe
Comment: What is linked into the program is listed in third-party.gz, with its licences.

Files: *
Copyright: {owner}
License: MIT or Apache-2.0

License: MIT
{indented}

License: Apache-2.0
 Licensed under the Apache License, Version 2.0. On Debian systems its text is in
 /usr/share/common-licenses/Apache-2.0.
"""


def changelog(package, maintainer):
    date = email.utils.formatdate(int(os.environ["SOURCE_DATE_EPOCH"]))
    return f"""{package['name']} ({package['version']}-{REVISION}) unstable; urgency=medium

  * Built from the sources of {package['name']} {package['version']};
    changelog.gz says what changed in them.

 -- {maintainer}  {date}
"""


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    graph = metadata()
    package = next(one for one in graph["packages"] if one["id"] == graph["resolve"]["root"])
    maintainer = (arguments[1:] and arguments[1]) or package["metadata"]["deb"]["maintainer"]
    papers = {"copyright": copyright_file(), "changelog.Debian": changelog(package, maintainer),
              "overrides": OVERRIDES.read_text(encoding="utf-8")}
    for name, text in papers.items():
        (Path(arguments[0]) / name).write_text(text, encoding="utf-8")
    (Path(arguments[0]) / "third-party.gz").write_bytes(gzip.compress(third_party(graph).encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
