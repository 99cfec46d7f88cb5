"""Files as named → series and comparisons."""

import os

import numpy

import documents
import samples
from arithmetic import Distribution
from comparison import comparison_of
from faults import Refused
from series import Facts, Outlier, Series, Windows

PERCENTILES = ("50", "99")
MACHINE_COUNTS = ("interrupts", "voluntary_switches", "involuntary_switches", "minor_faults", "major_faults", "smi_count")


def read_files(paths, point=None):
    """All series and all comparisons of some files. Samples of a point that is there as well are joined to it."""
    results, sampled, comparisons = [], [], []
    for path in paths:
        if os.path.isdir(path):
            raise Refused(f"{path}: it is a folder; name files")
        if os.path.splitext(path)[1].lower() in samples.ENDINGS:
            sampled.append(series_of_samples(path))
            continue
        document = documents.read_json(path)
        if document.value["schema"].startswith("lat-probe.comparison/"):
            comparisons.append(comparison_of(document, point))
        else:
            results += series_of_result(document, point)
    return results + [series for series in sampled if not join(series, results)], comparisons


def join(sampled, results):
    """Whether these samples are those of a point. A file's name does not tell: it may be of an earlier run, or an export."""
    for series in results:
        n, values_ns = sampled.n, sampled.distribution.values_ns
        if series.latencies_ns is None and series.n == n > 0 and abs(values_ns[-1] - series.max_ns) < 0.001 \
                and abs(values_ns[0] - series.min_ns) < 0.001:
            series.starts_ns, series.latencies_ns = sampled.starts_ns, sampled.latencies_ns
            series.distribution = sampled.distribution
            return True
    return False


def series_of_samples(path):
    starts_ns, latencies_ns = samples.read_samples(path)
    distribution = Distribution.of_samples(latencies_ns)
    percentiles = {percent: distribution.supported_quantile(int(percent) / 100) for percent in PERCENTILES}
    return Series(Facts(path), distribution, starts_ns, latencies_ns, percentiles_ns=percentiles)


def series_of_result(document, only_point):
    points = document.at("points").needed().items()
    if not points:
        raise Refused(f"{document.path}: `points` is empty, nothing was measured; measure again")
    if only_point is not None and only_point > len(points):
        raise Refused(f"{document.path}: it has {len(points)} points, there is no --point {only_point}")
    label = document.at("label").text()
    chosen = range(len(points)) if only_point is None else [only_point - 1]
    return [series_of_point(points[index], Facts(document.path, index + 1, label=label,
                                                 floor_ns=floor_of(document, index))) for index in chosen]


def floor_of(document, index):
    """A result that was taken up again has an instrument for each call; the document's is that of the last one."""
    instrument = document.at("instrument")
    for session in document.at("sweep", "sessions").items():
        if session.at("first_point").needed().count() <= index:
            instrument = session.at("instrument")
    return instrument.at("floor_ns", "percentiles", "50").number()


def series_of_point(point, facts):
    config, latency = point.at("config").needed(), point.at("latency_ns").needed()
    fill_facts(facts, config, point)
    low_ns, high_ns = latency.at("min").number(), latency.at("max").number()
    distribution = distribution_of(point.at("histogram", "buckets"), low_ns, high_ns)
    if distribution.n != latency.at("n").needed().count():
        raise latency.at("n").wrong(f"is not what the histogram holds, {distribution.n}")
    return Series(
        facts, distribution, min_ns=low_ns, max_ns=high_ns,
        percentiles_ns={percent: latency.at("percentiles", percent).number() for percent in PERCENTILES},
        ops_per_s=point.at("throughput", "ops_per_s").number(),
        bytes_per_s=point.at("throughput", "bytes_per_s").number(),
        outliers=[Outlier(each.at("at_ns").needed().number(), each.at("latency_ns").needed().number(),
                          each.at("cause").text()) for each in point.at("outliers").items()],
        windows=windows_of(point.at("timeline").items()),
        machine=machine_of(point.at("cpu")),
    )


def fill_facts(facts, config, point):
    facts.engine = config.at("engine").needed().text()
    facts.operation = config.at("rw").text() or config.at("block", "command").text()
    facts.bs_bytes = config.at("bs_bytes").count()
    facts.qd = config.at("qd").needed().count()
    facts.jobs = config.at("jobs").count()
    facts.rate_per_s = config.at("rate_per_s").count()
    facts.delay_ns = config.at("delay_ns").number()
    rdma, block = point.at("granted", "rdma", "device").text(), config.at("block", "target").text()
    peer = config.at("peer").text()
    facts.target = f"{rdma} to {peer}" if rdma and peer else rdma or block or peer


def distribution_of(buckets, low_ns, high_ns):
    """A bucket stands for its middle; the smallest and the largest sample are known exactly."""
    values, counts, before = [], [], 0
    for bucket in buckets.items():
        cells = [cell.needed().count() for cell in bucket.items()]
        if len(cells) != 3 or not before <= cells[0] < cells[1] or cells[2] < 1:
            raise bucket.wrong("is no bucket above the one before")
        before = cells[1]
        values.append((cells[0] + cells[1]) / 2)
        counts.append(cells[2])
    if sum(counts) > 2**53:
        raise buckets.wrong("holds too many samples")
    if values and (low_ns is None or high_ns is None or low_ns > high_ns):
        raise buckets.wrong("has samples without a smallest and a largest one")
    values = numpy.clip(values, low_ns, high_ns) if values else numpy.array([])
    if len(values):
        values[0], values[-1] = low_ns, high_ns
        if len(values) == 1 and low_ns != high_ns:
            # One bucket with two ends: the one sample that is the largest stands by itself.
            values, counts = numpy.array([low_ns, high_ns]), [counts[0] - 1, 1]
            if counts[0] < 1:
                raise buckets.wrong("has one sample that is both the smallest and the largest one")
    return Distribution(values, numpy.array(counts, dtype=numpy.int64))


def windows_of(windows):
    figures = Windows()
    for window in windows:
        figures.at_ns.append(window.at("at_ns").needed().number())
        figures.p50_ns.append(window.at("p50_ns").number())
        figures.p99_ns.append(window.at("p99_ns").number())
        figures.max_ns.append(window.at("max_ns").number())
    return figures


def machine_of(cpu):
    """What happened to the thread and its processor. What the kernel does not show is left out."""
    counted = {name: cpu.at(name).count() for name in MACHINE_COUNTS}
    for name in ("run_queue_wait_ns", "steal_ns"):
        counted[name] = cpu.at(name).number()
    return {name: number for name, number in counted.items() if number is not None}
