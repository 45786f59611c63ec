"""ringlab: exact ring attention, learned, proven and run.

- `attention` computes attention: the exact reference with a bound on its own error, or the engine.
- `verify` checks any implementation, a function on NumPy, PyTorch or other arrays, against the
  reference and the laws.
- `ask` and `trace` run a command of the program and return what it says; `ringlab.draw` draws that.

docs/python.md has examples.
"""
from ringlab._attention import Exact, Gradients, Subject, attention, subjects
from ringlab._core import version as __version__
from ringlab._errors import Error, InputError, RankError, RunError, UsageError
from ringlab._mask import Mask, MaskTerm
from ringlab._program import ask, trace
from ringlab._report import Failure, LawVerdict, Replay, Report
from ringlab._verify import Law, Limits, Profile, laws, replay, verify

__all__ = ["Error", "Exact", "Failure", "Gradients", "InputError", "Law", "LawVerdict", "Limits",
           "Mask", "MaskTerm", "Profile", "RankError", "Replay", "Report", "RunError", "Subject",
           "UsageError", "__version__", "ask", "attention", "laws", "replay", "subjects", "trace",
           "verify"]
