"""How figures look: told apart by colour-blind readers, and without colour by line and marker."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# Matplotlib keeps its list of fonts there: it asks for a folder of its own and must not depend on a home.
if "MPLCONFIGDIR" not in os.environ:
    target = Path(__file__).resolve().parents[2] / "target"
    own = target / "matplotlib"
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError:
        own = tempfile.mkdtemp(prefix="lat-probe-matplotlib.")
        atexit.register(shutil.rmtree, own, ignore_errors=True)
    os.environ["MPLCONFIGDIR"] = str(own)

import matplotlib

matplotlib.use("Agg")

# Okabe and Ito's colours (https://jfly.uni-koeln.de/color/) without yellow, which vanishes on white.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
LINES = ("-", (0, (5, 2)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.3)), (0, (8, 2, 1, 1.5, 1, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Beyond, no reader can follow a line; the numbers of lines and markers make each pair of them unique up to 35.
MOST_SERIES = 12
MOST_PANELS = 12

GREY = "#595959"
PALE = "#BDBDBD"
WIDTH_INCH = 7.0
HEIGHT_INCH = 4.4
DPI = 150

SETTINGS = {
    "axes.edgecolor": "#333333",
    "axes.axisbelow": True,
    "axes.formatter.use_locale": False,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "figure.dpi": DPI,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 3.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "savefig.dpi": DPI,
    # The same input gives the same bytes.
    "svg.hashsalt": "lat-probe",
    "svg.fonttype": "none",
    # A dollar or a caret in the name of a file is itself.
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
}


def apply():
    # What a user has set for other figures must not change these.
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(SETTINGS)


def line_style(index):
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index % len(LINES)]}


def marker(index):
    return MARKERS[index % len(MARKERS)]


def marker_style(index):
    """Hollow, so that a marker hides no other one."""
    return {"marker": marker(index), "markerfacecolor": "white", "markeredgewidth": 1.1}
