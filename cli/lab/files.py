"""Files that are written whole or not at all, several of them together."""
import contextlib
import os
import pathlib
import shutil
import tempfile

from catalogue import LabError


def write_file(path: pathlib.Path, text: str) -> None:
    """Writes a text; bytes that are no UTF-8 survive reading and writing."""
    write_texts({path: text})


def write_texts(texts: dict[pathlib.Path, str]) -> None:
    write_files({path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()})


def write_files(contents: dict[pathlib.Path, bytes]) -> None:
    """Writes all under temporary names, then renames them. A failure leaves what was there before, and
    an OSError has the name of the file that could not be written."""
    changes = Changes()
    try:
        ready = []
        for path, content in contents.items():
            changes.make_folder(path.parent)
            with names(path):
                ready.append((changes.temporary(path), path))
                ready[-1][0].write_bytes(content)
        for new, path in ready:
            with names(path):
                changes.rename(new, path)
    except BaseException as error:
        changes.undo(error)
        raise
    changes.discard()


@contextlib.contextmanager
def names(path: pathlib.Path):
    """Gives this name to an OSError."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


class Changes:
    def __init__(self):
        self.folders, self.temporaries = [], []
        self.renamed: list[tuple[pathlib.Path | None, pathlib.Path]] = []  # the old file, and its name

    def make_folder(self, folder: pathlib.Path) -> None:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            self.folders.append(each)

    def temporary(self, path: pathlib.Path) -> pathlib.Path:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix="." + path.name[:100] + ".", suffix=".tmp")
        os.close(handle)
        self.temporaries.append(path.with_name(os.path.basename(name)))
        return self.temporaries[-1]

    def rename(self, new: pathlib.Path, path: pathlib.Path) -> None:
        old = None
        if os.path.lexists(path):
            old = self.temporary(path)
            old.unlink()  # a link is not followed
            shutil.copy2(path, old, follow_symlinks=False)
        os.replace(new, path)
        self.renamed.append((old, path))

    def undo(self, error: BaseException) -> None:
        """Gives old files their names. LabError where the system refuses that, too."""
        kept = []
        for old, path in self.renamed:
            try:
                os.replace(old, path) if old else path.unlink()
            except OSError:
                kept += [old] if old else []
        self.temporaries = [file for file in self.temporaries if file not in kept]
        self.discard()
        for folder in reversed(self.folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if kept:
            raise LabError(f"{getattr(error, 'filename', 'files')}: expected to write the file, found "
                           f"{getattr(error, 'strerror', None) or error}. "
                           f"Files that were there before are now {', '.join(map(str, kept))}", 4)

    def discard(self) -> None:
        for file in self.temporaries:
            file.unlink(missing_ok=True)
