"""`python -m ringlab` and the command `ringlab`: the program that comes with the package."""
import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "ringlab"
    if not os.access(program, os.X_OK):
        sys.exit(f"ringlab: expected the program at {program}, found none. Install the package again")
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
