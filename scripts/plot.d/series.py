"""What is drawn: a series is one point of a result, or one file of samples."""

from dataclasses import dataclass, field
from pathlib import Path

from units import count_text, size_text, time_text


@dataclass
class Facts:
    """What is known of a series. None where its file does not say it."""

    file: str
    point: int = 1
    engine: str | None = None
    operation: str | None = None
    bs_bytes: int | None = None
    qd: int | None = None
    jobs: int | None = None
    rate_per_s: int | None = None
    delay_ns: float | None = None
    target: str | None = None
    label: str | None = None
    floor_ns: float | None = None

    def parts(self):
        """What tells it from others, each part in words."""
        named = self.delay_ns is not None and f"{self.engine} {time_text(self.delay_ns)}"
        return {
            "engine": named or self.engine,
            "operation": self.operation,
            "size": None if self.bs_bytes is None else size_text(self.bs_bytes),
            "depth": None if self.qd is None else f"depth {count_text(self.qd)}",
            "jobs": None if self.jobs in (None, 1) else f"{count_text(self.jobs)} jobs",
            "rate": None if self.rate_per_s is None else f"{count_text(self.rate_per_s)}/s a job",
            "target": self.target,
            "label": self.label,
        }


@dataclass
class Outlier:
    at_ns: float
    latency_ns: float
    cause: str | None


@dataclass
class Windows:
    """Hundredths of the run; None stands for a figure that a window does not support."""

    at_ns: list = field(default_factory=list)
    p50_ns: list = field(default_factory=list)
    p99_ns: list = field(default_factory=list)
    max_ns: list = field(default_factory=list)


@dataclass
class Series:
    facts: Facts
    distribution: object
    # Both arrays, in the order of the file; None where only the result is given.
    starts_ns: object = None
    latencies_ns: object = None
    min_ns: float | None = None
    max_ns: float | None = None
    percentiles_ns: dict = field(default_factory=dict)
    ops_per_s: float | None = None
    bytes_per_s: float | None = None
    outliers: list = field(default_factory=list)
    windows: Windows | None = None
    machine: dict = field(default_factory=dict)

    @property
    def n(self):
        return self.distribution.n

    @property
    def is_result(self):
        return self.facts.engine is not None


def shared(all_parts):
    """The parts that are the same in all series, for the title."""
    first = all_parts[0] if all_parts else {}
    return {name: text for name, text in first.items() if text and all(parts[name] == text for parts in all_parts)}


def legend_texts(all_series):
    """What tells each series from the others; its file, and the point in it, where nothing else does."""
    all_parts = [series.facts.parts() for series in all_series]
    common = shared(all_parts)
    texts = [", ".join(text for name, text in parts.items() if text and name not in common) for parts in all_parts]
    if len(set(texts)) < len(texts) or "" in texts:
        names = [Path(series.facts.file).name for series in all_series]
        texts = [", ".join(filter(None, (name, text))) for name, text in zip(names, texts)]
    if len(set(texts)) < len(texts):
        texts = [f"{text}, point {series.facts.point}" for text, series in zip(texts, all_series)]
    return texts
