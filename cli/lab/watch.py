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
    """Keys one by one, where there is a terminal."""
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


def run(options) -> int:
    import main  # which imports this module
    workspace = main.workspace_of(options)
    labs = {lab.id: lab for lab in main.exported(workspace)}
    files = {name: workspace.path / lab.file_name() for name, lab in labs.items()}
    current = main.next_lab(workspace)
    before = saved_at(files)
    print(f"Watching {len(files)} files in {pathlib.Path(options.dir).resolve()}: save one, and it is "
          "tested. Keys: n r h l x q", flush=True)

    def test(lab) -> None:
        main.show(lab, main.tried(workspace, lab))
        sys.stdout.flush()

    def with_lab(action) -> None:
        options.lab, options.exercise = current.id, None
        action(options)

    with single_keys() as has_keys:
        while True:
            key = key_within(SECONDS, has_keys)
            now = saved_at(files)
            changed = [name for name in now if now[name] != before.get(name)]
            before = now
            if changed:
                current = labs[changed[0]]
                test(current)
            elif key == "q":
                return 0
            elif key == "r":
                test(current)
            elif key == "n":
                current = main.next_lab(workspace)
                main.do_next(options)
            elif key == "h":
                with_lab(main.do_hint)
            elif key == "l":
                main.do_list(options)
            elif key == "x":
                with_lab(main.do_reset)
