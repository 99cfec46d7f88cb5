"""Figures → files, as a whole or not at all, the same bytes for the same figure."""

import io
import os
import tempfile
import warnings
from pathlib import Path

from faults import Refused, Unwritten

FORMATS = ("png", "svg")
# What might be meant as a file, though no figure is of that kind.
OTHER_ENDINGS = (".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp")


def targets(kinds, output, formats):
    """Where each kind goes: pairs of format and path for each."""
    ending = os.path.splitext(output)[1].lower()
    if ending in OTHER_ENDINGS:
        raise Refused(f"{output}: figures are .png or .svg; name such a file, or a folder")
    if ending[1:] in FORMATS:
        if len(kinds) > 1:
            raise Refused(f"{output}: `all` makes several figures; name a folder")
        if formats and formats != [ending[1:]]:
            raise Refused(f"{output}: --format says {','.join(formats)}; leave it out, or name a folder")
        if os.path.exists(output) and not os.path.isfile(output):
            raise Refused(f"{output}: it is no regular file; name another one")
        return {kinds[0]: [(ending[1:], output)]}
    return {kind: [(name, os.path.join(output, f"{kind}.{name}")) for name in formats or ["png"]] for kind in kinds}


def save(figure, targets_of_figure):
    for name, path in targets_of_figure:
        replace(path, rendered(figure, name))
        print(path)


def rendered(figure, name):
    drawn = io.BytesIO()
    # A date or a version would make other bytes of the same figure.
    metadata = {"Date": None, "Creator": None} if name == "svg" else {"Software": None}
    with warnings.catch_warnings():
        # A name in letters that the font lacks shows as boxes; that is no fault.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(drawn, format=name, metadata=metadata)
    return drawn.getvalue()


def replace(path, content):
    """Writes beside the file and renames: on any fault the old file stays."""
    # A link stays one: what it leads to is replaced.
    path = Path(os.path.realpath(path))
    beside = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".plot-", delete=False) as file:
            beside = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        os.replace(beside, path)
    except OSError as error:
        raise Unwritten(f"{path}: {error.strerror}; nothing was replaced, free some space or name another place") from None
    finally:
        if beside is not None and os.path.exists(beside):
            os.unlink(beside)
