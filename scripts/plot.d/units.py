"""Numbers as people read them. Decimal points and commas between thousands, whatever the locale."""

TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def time_unit(ns):
    """Factor and name of the unit that a time is told in."""
    # Rounding of an axis must not make 999.9999 ns of what is 1 µs.
    return next(((factor, name) for factor, name in TIME_UNITS if abs(ns) >= factor * (1 - 1e-9)), TIME_UNITS[-1])


def time_text(ns, digits=4):
    if ns == 0:
        return "0"
    factor, name = time_unit(ns)
    return f"{plain(ns / factor, digits)} {name}"


def plain(number, digits=4):
    """A number of so many digits, never with an exponent, without zeros at its end."""
    if abs(number) >= 10**digits:
        return f"{number:,.0f}"
    text = f"{number:.{digits}g}"
    return text if "e" not in text else f"{number:.{digits + 3}f}".rstrip("0").rstrip(".")


def size_text(size_bytes):
    for factor, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size_bytes >= factor and size_bytes * 8 % factor == 0:
            return f"{plain(size_bytes / factor)} {name}"
    return f"{count_text(size_bytes)} B"


def count_text(number):
    return f"{number:,.0f}"


def rate_text(per_s, unit=""):
    for factor, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(per_s) >= factor * (1 - 1e-9):
            return f"{plain(per_s / factor, 3)} {name}{unit}".rstrip()
    return f"{plain(per_s, 3)} {unit}".rstrip()


def percentile_text(percent):
    """99.9 %, with a narrow space as in the plots of HdrHistogram's descendants; never rounded up to 100."""
    return f"{percent:.10g} %"


def printable(text):
    """A text without what no font shows: half of a surrogate pair, which JSON can hold, and control characters."""
    return "".join(each if each.isprintable() else "?" for each in text.encode("utf-8", "replace").decode())


def shortened(text, most):
    """A text on one line, with its middle left out where it is too long."""
    shown = printable(text)
    if len(shown) <= most:
        return shown
    kept = max(most - 1, 2)
    return f"{shown[:(kept + 1) // 2]}…{shown[len(shown) - kept // 2:]}"
