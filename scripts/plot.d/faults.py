"""What can go wrong, each with the exit code that it ends the program with."""


class Refused(Exception):
    """An input or an option that cannot be drawn. The text says what is wrong, and a remedy."""

    code = 2


class Unwritten(Exception):
    """A figure that could not be stored."""

    code = 1
