"""A submission: the files of the labs and the work log, from a folder or a .zip."""
import dataclasses
import hashlib
import io
import os
import pathlib
import re
import stat
import zipfile
import zlib

from catalogue import LabError, all_labs
from files import write_files

WORK_LOG = "worklog.md"
MOST_BYTES = 1 << 20  # of a file
MOST_ARCHIVE_BYTES = 16 << 20
MOST_ENTRIES = 1000  # of an archive
STUDENT = re.compile(r"[A-Za-z0-9_@+][A-Za-z0-9_@+. -]{0,99}")


@dataclasses.dataclass
class Submission:
    student: str
    files: dict[str, str]  # "05_ring/ring.h": its text
    refused: str = ""  # the reason why it cannot be read; "" where it can

    def digest(self) -> str:
        """The digest of names and texts, independent of how the files were packed."""
        whole = hashlib.sha256()
        for name in sorted(self.files):
            for part in (name, self.files[name]):
                whole.update(len(part.encode()).to_bytes(8, "big") + part.encode())
        return whole.hexdigest()


def wanted_names() -> list[str]:
    return [lab.file_name() for lab in all_labs()] + [WORK_LOG]


def submissions_in(path: pathlib.Path, student: str | None = None) -> list[Submission]:
    """The submission at a path, or all those in a folder of submissions. There, one that cannot be read
    has its reason in `refused`, and does not stop the others."""
    path = path.resolve()
    if path.is_dir() and not files_of_folder(path):
        inner = [submission_at(one) for one in sorted(path.iterdir()) if not one.name.startswith(".")]
        found = [one for one in inner if one.files or one.refused]
        if student and len(found) == 1:
            found[0].student = student
    else:
        found = [Submission(student or name_of(path), files_of(path))]
    if not found or not any(one.files or one.refused for one in found):
        raise LabError(f"{path}: expected a folder that `ringlab lab export` wrote, or a .zip of "
                       "`ringlab lab submit`, found no file of a lab in it", 3)
    return found


def submission_at(path: pathlib.Path) -> Submission:
    """One of a folder of submissions. A link is not followed."""
    try:
        if path.is_symlink():
            raise LabError(f"{path}: expected a folder or a .zip file, found a link", 3)
        return Submission(name_of(path), files_of(path))
    except LabError as error:
        return Submission(path.name, {}, str(error))


def name_of(path: pathlib.Path) -> str:
    """The student: the name of the folder or of the .zip."""
    name = path.stem if path.suffix == ".zip" else path.name
    if not STUDENT.fullmatch(name):
        raise LabError(f"{path}: expected a name of letters, digits and _@+.- that stands for the "
                       f'student, found "{name}"', 3)
    return name


def files_of(path: pathlib.Path) -> dict[str, str]:
    if path.is_dir():
        return files_of_folder(path)
    try:
        return files_of_zip(path)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, RuntimeError,
            NotImplementedError) as error:
        raise LabError(f"{path}: expected a folder or a .zip file, found {error}", 3) from None


def files_of_folder(folder: pathlib.Path) -> dict[str, str]:
    """The wanted files of a folder. Links are left out, since they may lead to files of others."""
    files = {}
    for name in wanted_names():
        path = folder / name
        if path.is_file() and path.resolve() == folder.resolve() / name:
            with path.open("rb") as file:
                files[name] = text_of(file.read(MOST_BYTES + 1), path)
    return files


def files_of_zip(path: pathlib.Path) -> dict[str, str]:
    """The wanted files of a .zip, read without unpacking. They may lie in one common folder."""
    files, wanted = {}, wanted_names()
    with opened(path) as archive, zipfile.ZipFile(archive) as packed:
        if len(packed.infolist()) > MOST_ENTRIES:
            raise ValueError(f"more than {MOST_ENTRIES} files in it")
        for entry in packed.infolist():
            name = next((one for one in wanted
                         if re.fullmatch(r"([^/]+/)?" + re.escape(one), entry.filename)), None)
            if name and name not in files:
                with packed.open(entry) as file:
                    files[name] = text_of(file.read(MOST_BYTES + 1), path / name)
    return files


def opened(path: pathlib.Path):
    """The file at a path, if it is one: neither a pipe nor a device nor a link to one."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK))
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode) and about.st_size <= MOST_ARCHIVE_BYTES:
        return file
    file.close()
    raise ValueError(f"more than {MOST_ARCHIVE_BYTES} bytes" if stat.S_ISREG(about.st_mode) else "no file")


def text_of(content: bytes, path: pathlib.Path) -> str:
    if len(content) > MOST_BYTES:
        raise LabError(f"{path}: expected at most {MOST_BYTES} bytes, found more", 3)
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def pack(entries: dict[str, tuple[bytes, int]], target: pathlib.Path) -> None:
    """Writes a .zip of (content, mode) by name, without dates and owners: equal files give equal bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(entries):
            content, mode = entries[name]
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            packed.writestr(entry, content)
    write_files({target: whole.getvalue()})
