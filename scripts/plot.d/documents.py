"""JSON documents of lat-probe: parsed, known by their schema, and read place by place with the type that is expected.

Whatever is in a file, only `Refused` leaves this module.
"""

import json
import math

from faults import Refused
from units import printable

KNOWN = ("lat-probe.result/1", "lat-probe.comparison/1")


class Place:
    """A value and where it stands, so that a fault can name its place."""

    def __init__(self, path, value, where=""):
        self.path, self.value, self.where = path, value, where

    def wrong(self, why):
        return Refused(f"{self.path}: `{self.where}` {why}; the file is damaged, measure or compare again")

    def at(self, *keys):
        """What stands at a place. Null, and a key that an earlier version did not write, both give None."""
        value, where = self.value, self.where
        for key in keys:
            if value is not None and not isinstance(value, dict):
                raise Place(self.path, value, where).wrong("is no object")
            value = None if value is None else value.get(key)
            where = f"{where}.{key}" if where else key
        return Place(self.path, value, where)

    def items(self, most=None):
        if self.value is None:
            return []
        if not isinstance(self.value, list) or (most is not None and len(self.value) > most):
            raise self.wrong("is no list" if most is None else f"is no list of at most {most}")
        return [Place(self.path, value, f"{self.where}[{index}]") for index, value in enumerate(self.value)]

    def text(self):
        if self.value is None or isinstance(self.value, str):
            return self.value and printable(self.value)
        raise self.wrong("is no text")

    def number(self, least=0.0):
        """A finite number, or None."""
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.wrong("is no number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        # The figures are at most 2^53: beyond, neither axes nor integers are exact.
        if not abs(number) <= 2.0**53 or number < least:
            raise self.wrong("is out of range")
        return number

    def count(self):
        number = self.number()
        if number is not None and number != int(number):
            raise self.wrong("is no whole number")
        return None if number is None else int(number)

    def needed(self):
        if self.value is None:
            raise self.wrong("is missing")
        return self


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def read_json(path):
    """The document in a file, as a `Place`, with its schema checked."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise Refused(f"{path}: no text; name a JSON document, or samples as .npy or .csv") from None
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; name a readable file") from None
    if not text.strip():
        raise Refused(f"{path}: it is empty; write it again with --output")
    try:
        document = Place(path, json.loads(text, parse_constant=no_constant))
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(f"{path}: no JSON document ({why}); it may be cut short: write it again with --output") from None
    schema = document.value.get("schema") if isinstance(document.value, dict) else None
    if not isinstance(schema, str):
        raise Refused(f"{path}: it has no `schema`, so lat-probe did not write it; name one of its results or comparisons")
    if schema not in KNOWN:
        raise Refused(f"{path}: its `schema` is {schema[:60]!r}; {remedy(schema)}")
    return document


def remedy(schema):
    known = " and ".join(KNOWN)
    name = schema.partition("/")[0]
    if name in {each.partition("/")[0] for each in KNOWN}:
        return f"this script reads {known}: take the scripts/plot of the version that wrote it"
    if name == "lat-probe.series":
        return "a series is drawn from its comparison: name the file of `ab --comparison` or of `compare --output`"
    return f"this script reads {known}"
