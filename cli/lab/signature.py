"""Signatures of reports: a report that the grader did not write itself is worth nothing."""
import hashlib
import hmac
import json
import pathlib

from catalogue import LabError


class NotSigned(LabError):
    """A file that the grader did not write, at least not with this secret."""


def signed(document: dict, key: bytes) -> dict:
    return document | {"signature": signature_of(document, key)}


def signature_of(document: dict, key: bytes) -> str:
    """HMAC-SHA256 of all but the signature."""
    rest = {name: value for name, value in document.items() if name != "signature"}
    return hmac.new(key, json.dumps(rest, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def read(file: pathlib.Path, key: bytes) -> dict:
    """The report in DIR/STUDENT/grade.json, without its signature, which is checked; it is that of
    this student."""
    try:
        document = json.loads(file.read_bytes())
        is_ours = hmac.compare_digest(document["signature"], signature_of(document, key))
        if is_ours and document["student"] == file.parent.name:
            return {name: value for name, value in document.items() if name != "signature"}
        found = "a report of another student" if is_ours else "another signature"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        found = repr(error)
    raise NotSigned(f"{file}: expected a report that `ringlab lab grade` signed with this secret, "
                    f"found {found}. Move it away to grade without it", 3)
