"""The exceptions of ringlab: what was expected, what was found, what to do."""


class Error(Exception):
    """Base of all of them. `str()` reads "WHERE: expected EXPECTED, found FOUND. HINT"; the parts are
    attributes, empty where there is nothing to say."""

    def __init__(self, message: str, *, where: str = "", expected: str = "", found: str = "",
                 hint: str = "") -> None:
        super().__init__(message)
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint

    def __reduce__(self):
        return type(self), self.args, self.__dict__


class UsageError(Error, ValueError):
    """Arguments that make no sense, or not together."""


class InputError(Error, ValueError):
    """Arrays that do not fit, or hold what cannot be computed with."""


class RunError(Error, RuntimeError):
    """The machine failed: a deadline passed, a rank ended, memory ran out."""


class RankError(RunError):
    """A rank could not go on. `rank` says so, `suspect` is to blame as far as is known (-1: nobody),
    `step` is that of the schedule (-1: before the first)."""

    rank = 0
    suspect = -1
    step = -1


def usage_error(where: str, expected: str, found: object, hint: str = "") -> UsageError:
    """An error in the form of all others, to be raised."""
    return _formed(UsageError, where, expected, found, hint)


def input_error(where: str, expected: str, found: object, hint: str = "") -> InputError:
    """Likewise."""
    return _formed(InputError, where, expected, found, hint)


def _formed(kind: type, where: str, expected: str, found: object, hint: str) -> Error:
    text = f"{where}: expected {expected}, found {found}"
    return kind(text + (f". {hint}" if hint else ""), where=where, expected=expected,
                found=str(found), hint=hint)
