"""Signatures of reports: a report that the grader did not write itself is worth nothing."""
import hashlib
import hmac
import json
import pathlib

from catalogue import LabError
from grading import SCHEMA


class NotSigned(LabError):
    """A file that the grader did not write, at least not with this secret."""


def signed(document: dict, key: bytes) -> dict:
    return document | {"signature": signature_of(document, key)}


def unsigned(document: dict) -> dict:
    return {name: value for name, value in document.items() if name != "signature"}


def signature_of(document: dict, key: bytes) -> str:
    """HMAC-SHA256 of all but the signature."""
    text = json.dumps(unsigned(document), sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def read(file: pathlib.Path, key: bytes) -> dict:
    """The report in DIR/STUDENT/grade.json, without its signature, which is checked; it is that of
    this student."""
    try:
        document = json.loads(file.read_bytes())
        if not hmac.compare_digest(document["signature"], signature_of(document, key)):
            found = "another signature"
        elif document["student"] != file.parent.name:
            found = "a report of another student"
        elif document["schema"] != SCHEMA:
            found = f"schema {document['schema']}"
        else:
            return unsigned(document)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        found = repr(error)
    raise NotSigned(f"{file}: expected a report that `ringlab lab grade` signed with this secret, "
                    f"found {found}. Move it away to grade without it", 3)
