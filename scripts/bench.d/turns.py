"""Runs contenders in turn, each with a deadline, and keeps what they say."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from tools import Failed


@dataclass
class Contender:
    """One command line of one tool. `{port}` in it becomes a port of its own for each run."""
    name: str
    tool: str
    command: list
    read: Callable
    definition: str
    ours: bool = False
    resolution: dict = field(default_factory=dict)
    server: list = None
    listens: Callable = None
    deadline_s: float = 30
    rounds: list = field(default_factory=list)
    status: str = "measured"
    reason: str = None


# lat-probe's exit code on a machine that lacks what the engine needs.
LACKING = 77


def say(text):
    print(f"rivals: {text}", file=sys.stderr, flush=True)


def end(process):
    """Ends a process that this script started, with its children, unless it has ended by itself."""
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def start(command, output, errors):
    """In a process group of its own, so that its children end with it."""
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error


def run(command, deadline_s):
    """The standard output of a command. Its standard error is told apart because fio and perftest warn there."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(command, out, err)
        try:
            code = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            code = f"not done after {deadline_s:g} s"
        finally:
            end(process)
        out.seek(0)
        err.seek(0)
        said, errors = (stream.read().decode(errors="replace") for stream in (out, err))
    if code != 0:
        # What fio says on stdout is JSON of nothing; its reason is on stderr.
        reason = " ".join((errors.strip() or said).split())[:300]
        raise Failed(f"{code if isinstance(code, str) else f'exit code {code}'}: {reason}", code)
    return said


def listens_on_tcp(port):
    """Without a connection, which perftest would take for its client."""
    wanted = f":{port:04X}"
    for table in ("tcp", "tcp6"):
        rows = [line.split() for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()]
        if any(row[1].endswith(wanted) and row[3] == "0A" for row in rows):
            return True
    return False


def listens_on_rdma_cm(port):
    said = run(["rdma", "resource", "show", "cm_id"], 10)
    return any("LISTEN" in line and f":{port} " in line + " " for line in said.splitlines())


def with_port(command, port):
    return [word.replace("{port}", str(port)) for word in command]


def measure(contender, port):
    """One run, with its server where it has one."""
    command = with_port(contender.command, port)
    if contender.server is None:
        return contender.read(run(command, contender.deadline_s))
    with tempfile.TemporaryFile() as out:
        server = start(with_port(contender.server, port), out, subprocess.STDOUT)
        try:
            until = time.monotonic() + contender.deadline_s
            while not contender.listens(port):
                if server.poll() is not None or time.monotonic() > until:
                    out.seek(0)
                    said = " ".join(out.read().decode(errors="replace").split())[:300]
                    raise Failed(f"its server does not listen: {said}")
                time.sleep(0.02)
            return contender.read(run(command, contender.deadline_s))
        finally:
            end(server)


def mark_missing(contests):
    for contest in contests:
        for contender in contest.contenders:
            if not contender.ours and shutil.which(contender.tool) is None:
                contender.status, contender.reason = "not installed", f"{contender.tool} is not installed"


def take_turns(contests, rounds, first_port):
    """All contenders of a contest one after another, each round in the other order (A B B A …).

    A rival that fails is out from then on, and so is an engine that this machine lacks (a kernel without io_uring). Any
    other failure of lat-probe ends the run.
    """
    mark_missing(contests)
    port = first_port
    for index in range(rounds):
        for contest in contests:
            order = contest.contenders if index % 2 == 0 else contest.contenders[::-1]
            for contender in (one for one in order if one.status == "measured"):
                port += 1
                say(f"round {index + 1} of {rounds}: {contest.name}: {contender.name}")
                try:
                    contender.rounds.append(measure(contender, port))
                except Failed as failure:
                    if contender.ours and failure.code != LACKING:
                        raise Failed(f"{contender.name}: {failure}") from failure
                    contender.status, contender.reason = "failed", str(failure)
                    say(f"{contender.name} failed: {failure}")
