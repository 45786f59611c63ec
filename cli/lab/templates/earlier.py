"""earlier.py METADATA REPORT: writes the native report of the last submission that had one.

So nobody loses points by handing in again; each of Gradescope's containers begins with nothing."""
import json
import pathlib
import sys

metadata, report = map(pathlib.Path, sys.argv[1:])
before = json.loads(metadata.read_text()).get("previous_submissions", []) if metadata.exists() else []
for submission in sorted(before, key=lambda one: one["submission_time"], reverse=True):
    found = ((submission.get("results") or {}).get("extra_data") or {}).get("ringlab")
    if found:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(found))
        break
