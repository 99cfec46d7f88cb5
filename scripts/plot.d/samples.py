"""Files of samples, as `--samples` and `lat-probe export` write them. Whatever is in a file, only `Refused` leaves."""

import csv
import os

import numpy

from faults import Refused

NEEDED = ("start_ns", "latency_ns")
ENDINGS = (".npy", ".csv", ".parquet")
AGAIN = "write it again with --samples, or with lat-probe export"


def read_samples(path):
    """Starts and latencies in nanoseconds, in the order of the file."""
    readers = {".npy": read_npy, ".csv": read_csv, ".parquet": read_parquet}
    try:
        if os.path.getsize(path) == 0:
            raise Refused(f"{path}: it is empty; {AGAIN}")
        starts_ns, latencies_ns = readers[os.path.splitext(path)[1].lower()](path)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}; name a readable file") from None
    for name, column in zip(NEEDED, (starts_ns, latencies_ns)):
        wrong = numpy.flatnonzero(~((column >= 0) & (column <= 2.0**53)))
        if len(wrong):
            raise Refused(f"{path}: `{name}` of sample {wrong[0] + 1} is {column[wrong[0]]}, which is no time; {AGAIN}")
    return starts_ns, latencies_ns


def read_npy(path):
    with open(path, "rb") as file:
        try:
            # Objects are not unpickled: that would run what is in the file.
            array = numpy.lib.format.read_array(file, allow_pickle=False)
        # A header of NumPy is parsed as Python, so that damage shows as any of a dozen exceptions.
        except Exception as error:
            why = str(error).split("\n")[0] or type(error).__name__
            raise Refused(f"{path}: no whole array of NumPy ({why[:120]}); {AGAIN}") from None
    names = array.dtype.names or ()
    if array.ndim != 1 or not set(NEEDED) <= set(names):
        found = ", ".join(map(str, names)) or f"an array of {array.dtype} without names"
        raise Refused(f"{path}: it lacks the columns {' and '.join(NEEDED)} (it has {found[:120]}); {AGAIN}")
    for name in NEEDED:
        if array.dtype[name].kind not in "fiu":
            raise Refused(f"{path}: `{name}` is no number but {array.dtype[name]}; {AGAIN}")
    return tuple(array[name].astype(numpy.float64) for name in NEEDED)


def read_csv(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            if not set(NEEDED) <= set(head):
                raise Refused(f"{path}: its first line lacks the columns {' and '.join(NEEDED)}; {AGAIN}")
            columns = csv_columns(path, rows, head)
    except (UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{path}: no table of samples ({error}); {AGAIN}") from None
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise Refused(f"{path}: its last line is cut short; {AGAIN}")
    return columns


def csv_columns(path, rows, head):
    places, width = [head.index(name) for name in NEEDED], len(head)
    columns = ([], [])
    for number, row in enumerate(rows, 2):
        if len(row) != width:
            raise Refused(f"{path}: line {number} has {len(row)} columns, the first one {width}; {AGAIN}")
        for place, column in zip(places, columns):
            try:
                column.append(float(row[place]))
            except ValueError:
                raise Refused(f"{path}: line {number}: {row[place][:40]!r} is no time; {AGAIN}") from None
    return tuple(numpy.array(column, dtype=numpy.float64) for column in columns)


def read_parquet(path):
    try:
        import pyarrow.parquet
    except ImportError:
        raise Refused(f"{path}: Parquet needs pyarrow, which is not here; "
                      "write .npy instead: lat-probe export --to npy") from None
    try:
        table = pyarrow.parquet.read_table(path, columns=list(NEEDED))
        return tuple(table[name].to_numpy().astype(numpy.float64) for name in NEEDED)
    # What a damaged file raises depends on the version of pyarrow.
    except Exception as error:
        raise Refused(f"{path}: no table of samples ({str(error)[:120]}); {AGAIN}") from None
