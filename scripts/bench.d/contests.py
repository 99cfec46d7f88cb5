"""Who is compared with whom: the command lines, and which figure stands beside which."""

from argparse import Namespace
from dataclasses import dataclass

import tools
from turns import Contender, listens_on_rdma_cm, listens_on_tcp

PERFTEST_STEP = {"ns": 10}
WARMUP = 1000
BLOCK_BYTES, FILE_BYTES = 4096, 1 << 20
MESSAGE_BYTES = 8
FIO_RECEIVES = 128
SERVER_ADDRESS, SERVER_CPU, CLIENT_CPU = "10.0.0.1", 0, 1
# An emulated counter is not invariant, and the monotonic clock takes microseconds there. perftest reads the counter all the
# same: both shall read the same clock.
CLOCK = ["--clock", "tsc"]

UNFENCED = "fio's two reads of the clock are not fenced, ours are, and fences take time"
WORKER = ("probably because on tmpfs a kernel thread does the command, and may wait for the CPU that our polling keeps, while fio "
          "sleeps in the kernel, as `--completion event` does")
STAMPED_LATE = "not the same span: fio's clat starts after the submitting call; its lat and the period hold the whole command"
UNKNOWN = "cause not known"


@dataclass
class Comparison:
    """Our contender's figure beside a rival's. `reason` says why we lose, should we."""
    ours: str
    theirs: str
    our_figure: str
    their_figure: str
    same_span: bool = True
    reason: str = UNKNOWN
    period_reason: str = UNKNOWN


@dataclass
class Contest:
    name: str
    title: str
    contenders: list
    comparisons: list


def fio_step(settings):
    """A bucket of its histogram, and a millisecond of its run time shared by all commands."""
    return {"relative": 1 / 128, "period_ns": 1e6 / settings.commands}


def lat_probe(settings, engine, options, name, definition=tools.LAT_PROBE, **more):
    command = [settings.lat_probe, "--engine", engine, *options, "--count", str(settings.commands),
               "--warmup", str(WARMUP), "--format", "json", "--progress", "never"]
    return Contender(name, "lat-probe", command, tools.read_lat_probe, definition, ours=True, **more)


# --- On the host: files and nothing ---

def fio(settings, engine, cpu, options, definition):
    command = ["fio", "--name=rivals", f"--ioengine={engine}", "--rw=randread", f"--bs={BLOCK_BYTES}", f"--size={FILE_BYTES}",
               f"--io_size={settings.commands * BLOCK_BYTES}", "--norandommap=1", "--iodepth=1", "--thread",
               f"--cpus_allowed={cpu}", "--output-format=json", *options]
    return Contender("fio", "fio", command, tools.read_fio("read", settings.commands), definition,
                     resolution=fio_step(settings), deadline_s=120)


def replace_commands(settings, commands):
    return Namespace(**{**vars(settings), "commands": commands})


def null_contest(settings, cpu):
    # So short a command needs more of them, for fio's run time has whole milliseconds.
    settings = replace_commands(settings, 5 * settings.commands)
    ours = lat_probe(settings, "null", ["--cpu", str(cpu)], name="lat-probe")
    return Contest("null", "nothing (`null`)", [ours, fio(settings, "null", cpu, [], tools.FIO_SYNC)],
                   [Comparison("lat-probe", "fio", "p50_ns", "clat_p50_ns", reason=UNFENCED)])


def file_contest(settings, engine, place, file, cpu):
    target = ["--target", file, "--buffered", "--rw", "randread", "--bs", str(BLOCK_BYTES), "--size", str(FILE_BYTES), "--cpu",
              str(cpu)]
    options = [f"--filename={file}", "--direct=0", "--invalidate=0", "--allow_file_create=0", "--lat_percentiles=1",
               "--clat_percentiles=1"]
    sync = engine == "psync"
    contenders = [fio(settings, engine.replace("-", "_"), cpu, options, tools.FIO_SYNC if sync else tools.FIO_ASYNC)]
    comparisons = []
    for how in ["lat-probe"] if sync else ["poll", "event"]:
        # A command by psync has nothing to poll.
        waits = [] if sync else ["--completion", how]
        contenders.insert(-1, lat_probe(settings, engine, target + waits, name=how, deadline_s=120))
        reason = WORKER if engine == "io-uring" and how == "poll" and place == "tmpfs" else UNKNOWN
        comparisons.append(Comparison(how, "fio", "p50_ns", "clat_p50_ns" if sync else "lat_p50_ns", reason=reason,
                                      period_reason=reason))
    if not sync:
        comparisons.append(Comparison("event", "fio", "p50_ns", "clat_p50_ns", same_span=False, reason=STAMPED_LATE))
    if engine != "io-uring":  # ioping has no io_uring.
        contenders.append(ioping(settings, file, cpu, [] if sync else ["-A"]))
        comparisons.append(Comparison("lat-probe" if sync else "event", "ioping", "mean_ns", "mean_ns"))
    return Contest(f"{engine}-{place}", f"`{engine}`, {place}", contenders, comparisons)


def ioping(settings, file, cpu, options):
    command = ["taskset", "-c", str(cpu), "ioping", "-C", *options, "-q", "-J", "-i", "0", "-a", str(WARMUP),
               "-c", str(WARMUP + settings.commands), "-s", str(BLOCK_BYTES), "-S", str(FILE_BYTES), file]
    return Contender("ioping", "ioping", command, tools.read_ioping, tools.IOPING_ASYNC if options else tools.IOPING,
                     resolution={"ns": 1}, deadline_s=120)


def host_contests(settings, files, cpu):
    """`files` maps the kind of place (tmpfs, ext4) to a file there."""
    return [null_contest(settings, cpu)] + [file_contest(settings, engine, place, file, cpu)
                                            for engine in ("psync", "libaio", "io-uring") for place, file in files.items()]


# --- In the lab: soft-RoCE, the two ends in two processes on two CPUs ---

def on_cpu(cpu, command):
    return ["taskset", "-c", str(cpu), *command]


def our_rdma(settings, engine, options=(), name="lat-probe", definition=tools.LAT_PROBE_LAB):
    server = [settings.lat_probe, "serve", "--once", "--bind", SERVER_ADDRESS + ":{port}", "--cpu", str(SERVER_CPU),
              "--gid-index", "1"]
    return lat_probe(settings, engine, ["--bs", str(MESSAGE_BYTES), "--peer", SERVER_ADDRESS + ":{port}", "--cpu",
                                        str(CLIENT_CPU), "--gid-index", "1", *CLOCK, *options],
                     name=name, definition=definition, server=server, listens=listens_on_tcp, deadline_s=60)


def perftest(settings, tool, options, half=False):
    command = [tool, "-d", "rxe0", "-x", "1", "-F", "-n", str(settings.commands), "-p", "{port}", *options]
    return Contender(tool, tool, on_cpu(CLIENT_CPU, [*command, SERVER_ADDRESS]), tools.read_perftest(2 if half else 1),
                     tools.PERFTEST_HALF if half else tools.PERFTEST_FULL, resolution=PERFTEST_STEP,
                     server=on_cpu(SERVER_CPU, command), listens=listens_on_tcp, deadline_s=60)


def qperf(test, definition, messages_per_period):
    command = ["qperf", SERVER_ADDRESS, "-lp", "{port}", "-cm1", "-cp1", "-t", "1", "-m", str(MESSAGE_BYTES), "-e", "6", "-uu",
               test]
    return Contender(test, "qperf", on_cpu(CLIENT_CPU, command), tools.read_qperf(messages_per_period), definition,
                     server=on_cpu(SERVER_CPU, ["qperf", "-lp", "{port}"]), listens=listens_on_tcp, deadline_s=30)


def fio_rdma(settings, verb):
    # fio takes reading for serving, so its client writes whatever the verb is. It gives a SEND no second try when the far
    # end has no receive posted; with few of them it always fails ("RNR retry counter exceeded"), with many it may.
    common = ["--ioengine=rdma", f"--hostname={SERVER_ADDRESS}", "--port={port}", f"--bs={MESSAGE_BYTES}",
              f"--size={settings.commands * MESSAGE_BYTES}"]
    client = ["fio", "--name=client", *common, f"--verb={verb}", "--rw=write", "--iodepth=1", "--output-format=json",
              "--lat_percentiles=1", "--clat_percentiles=1"]
    server = ["fio", "--name=server", *common, "--rw=read", f"--iodepth={FIO_RECEIVES}"]
    return Contender("fio", "fio", on_cpu(CLIENT_CPU, client), tools.read_fio("write", settings.commands), tools.FIO_RDMA,
                     resolution=fio_step(settings), server=on_cpu(SERVER_CPU, server), listens=listens_on_rdma_cm, deadline_s=20)


def fio_comparisons():
    return [Comparison("event", "fio", "p50_ns", "lat_p50_ns"),
            Comparison("event", "fio", "p50_ns", "clat_p50_ns", same_span=False, reason=STAMPED_LATE),
            Comparison("poll", "fio", "p50_ns", "lat_p50_ns")]


def one_sided(settings, verb, rivals=(), comparisons=()):
    """Polled, as by default, and asleep until the completion, as fio always is. fio does not send inline."""
    engine = f"rdma-{verb}"
    inline = [] if verb == "read" else ["--inline", "0"]
    ours = [our_rdma(settings, engine, inline, "poll"), our_rdma(settings, engine, [*inline, "--completion", "event"], "event")]
    return Contest(engine, f"`{engine}`", [*ours, *rivals, fio_rdma(settings, verb)],
                   [*comparisons, *fio_comparisons()])


def atomic(settings, engine, operation):
    return Contest(engine, f"`{engine}`", [our_rdma(settings, engine), perftest(settings, "ib_atomic_lat", ["-A", operation])],
                   [Comparison("lat-probe", "ib_atomic_lat", "p50_ns", "p50_ns")])


def ping_pong(settings, engine, tool, others):
    rivals = [perftest(settings, tool, ["-s", str(MESSAGE_BYTES), "-I", str(MESSAGE_BYTES)], half=True), *others]
    ours = our_rdma(settings, engine, ["--half-rtt"], definition=tools.LAT_PROBE_HALF)
    return Contest(engine, f"`{engine} --half-rtt`", [ours, *rivals],
                   [Comparison("lat-probe", tool, "p50_ns", "p50_ns")] +
                   [Comparison("lat-probe", other.name, "mean_ns", "mean_ns") for other in others])


def lab_contests(settings):
    read_rivals = [perftest(settings, "ib_read_lat", ["-s", str(MESSAGE_BYTES)]), qperf("rc_rdma_read_lat", tools.QPERF_READ, 1)]
    return [
        one_sided(settings, "read", read_rivals, [Comparison("poll", "ib_read_lat", "p50_ns", "p50_ns"),
                                                  Comparison("poll", "rc_rdma_read_lat", "mean_ns", "mean_ns")]),
        one_sided(settings, "write"),
        ping_pong(settings, "rdma-write-pingpong", "ib_write_lat",
                  [qperf("rc_rdma_write_poll_lat", tools.QPERF_WRITE, 2), qperf("rc_rdma_write_lat", tools.QPERF_WRITE_IMM, 2)]),
        one_sided(settings, "send"),
        ping_pong(settings, "rdma-send-pingpong", "ib_send_lat", [qperf("rc_lat", tools.QPERF_SEND, 2)]),
        atomic(settings, "rdma-cas", "CMP_AND_SWAP"),
        atomic(settings, "rdma-faa", "FETCH_AND_ADD"),
    ]
