"""One lab guest: its QEMU, the channel to it, and the word on how it ended."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Devices of the emulated board that no test looks at; the watchdog is vng's own.
BOARD_OPTIONS = ["-nodefaults"]


class Guest:
    """A guest that runs until its command ended, until `hang_up`, or until `kill`.

    QEMU is in a session of its own, so that `kill` reaches all that was started here and nothing else.
    """

    def __init__(self, plan, number):
        self.number = number
        self.stage_file = plan.run_folder / f"stage-{number}"
        self.console_log = plan.log_folder / f"{plan.run_folder.name}-console{number}.log"
        self.stage_file.touch()
        environment = dict(os.environ, LAB_CONSOLE_LOG=str(self.console_log), LAB_INIT=str(HERE / "guest-root"))
        environment["PATH"] = f"{plan.venv / 'bin'}:{environment['PATH']}"
        self.process = subprocess.Popen(
            _vng_command(plan, number), env=environment, cwd="/", start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # QEMU opens its output by name, which would cut a file off: it gets pipes, whatever the caller's output is.
        self.relays = [_relay(self.process.stdout, sys.stdout), _relay(self.process.stderr, sys.stderr)]

    def stages(self):
        """The lines that the guest has written so far."""
        return self.stage_file.read_text(encoding="utf-8", errors="replace").splitlines()

    def exit_code(self):
        """The command's exit code, or None when the guest never came to write one."""
        for line in self.stages():
            if line.startswith("exit "):
                return int(line.split()[1])
        return None

    def why_failed(self):
        """One sentence on a guest that ended without an exit code."""
        stages = self.stages()
        for line in stages:
            if line.startswith("failed "):
                return line[len("failed "):]
        console = self.console_log.read_text(errors="replace") if self.console_log.exists() else ""
        panic = next((line for line in console.splitlines() if "Kernel panic" in line), None)
        if panic is not None:
            return f"the guest's kernel stopped: {panic.strip()}"
        if not stages:
            return "the guest did not boot"
        return f"the guest ended by itself after the stage `{stages[-1]}`"

    def hang_up(self):
        """Asks the guest to end: it watches for the far end of this pipe to close."""
        self.process.stdin.close()

    def wait(self, deadline_s):
        """True when QEMU has ended and all its output was passed on."""
        try:
            self.process.wait(timeout=max(0.0, deadline_s))
        except subprocess.TimeoutExpired:
            return False
        for relay in self.relays:
            relay.join(timeout=5)
        return True

    def kill(self):
        """Ends whatever is left of this guest."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            if self._group_is_gone_within(2.0):
                break
        self.process.wait()

    def _group_is_gone_within(self, seconds):
        pause = threading.Event()
        for _ in range(int(seconds * 20)):
            self.process.poll()
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return True
            pause.wait(0.05)
        return False


def _relay(source, sink):
    """Copies bytes as they come; a reader that went away must not stop the guest."""
    def copy():
        while block := source.read1(65536):
            try:
                sink.buffer.write(block)
                sink.buffer.flush()
            except (BrokenPipeError, ValueError):
                pass
    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def _vng_command(plan, number):
    options = list(BOARD_OPTIONS)
    command = [str(plan.venv / "bin/vng"), "-r", str(plan.kernel), "--qemu", str(HERE / "qemu"), "--user", "root",
               "--cpus", str(plan.cpus), "--memory", plan.memory, "--disable-microvm", "--force-9p",
               "--rwdir", str(plan.run_folder), "--rwdir", str(plan.out_folder),
               "-a", f"lab_host={number}", "-a", "loglevel=6", "-a", "net.ifnames=0"]
    if not plan.kvm:
        command.append("--disable-kvm")
    if plan.deterministic:
        # Guest time counts instructions, 4 ns each; idle time is skipped. Only with one CPU is that a pure function.
        options += ["-icount", "shift=2,sleep=off"]
        command += ["-a", "tsc=reliable"]
    if plan.hosts == 2:
        role = "on" if number == 1 else "off"
        options += ["-netdev", f"stream,id=cable,server={role},addr.type=unix,addr.path={plan.cable}",
                    "-device", f"virtio-net-pci,netdev=cable,mac=52:54:00:00:00:0{number}"]
    options += plan.qemu_options
    for option in options:
        command.append(f"--qemu-opts={option}")
    # vng insists on a command of its own; guest-root, which the wrapper puts in its place, takes no notice of it.
    return command + ["--", "true"]


def remove_run_folder(folder):
    """The run folder is private to one run; the logs and the output folder stay."""
    shutil.rmtree(folder, ignore_errors=True)
