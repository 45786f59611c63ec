"""Tests a file whenever it is saved."""
import contextlib
import pathlib
import select
import sys
import termios
import time
import tty

SECONDS = 0.3


@contextlib.contextmanager
def single_keys():
    """Reads keys one by one on a terminal, without Enter."""
    if not sys.stdin.isatty():
        yield False
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield True
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def key_within(seconds: float, has_keys: bool) -> str:
    if not has_keys:
        time.sleep(seconds)
        return ""
    return sys.stdin.read(1) if select.select([sys.stdin], [], [], seconds)[0] else ""


def saved_at(files: dict) -> dict:
    return {lab: path.stat().st_mtime_ns for lab, path in files.items() if path.exists()}


def run(folder: pathlib.Path, files: dict, current: str, test, keys: dict) -> int:
    """Tests a lab whose file was saved, until `q`. `files` are paths by lab; an action of `keys` gets the current
    lab and returns the one that is current then."""
    before = saved_at(files)
    print(f"Watching {len(files)} files in {folder}: save one, and it is tested. Keys: n r h l x q", flush=True)
    with single_keys() as has_keys:
        while True:
            key = key_within(SECONDS, has_keys)
            now = saved_at(files)
            changed = [name for name in now if now[name] != before.get(name)]
            before = now
            if changed:
                current = changed[0]
                test(current)
            elif key == "q":
                return 0
            elif key in keys:
                current = keys[key](current)
