"""Functions that end, hang, or reach for the process that verifies them."""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import numpy as np

import numpy_functions as functions
import ringlab

np.seterr(all="ignore")

U = {"laws": ["U"], "cases": 4, "progress": False}
MARK = pathlib.Path(tempfile.mkdtemp()) / "mark"
JUDGE = os.getpid()
HERE = tempfile.mkdtemp()  # a folder of modules


def right_after(deed):
    """The right function, which first does something else."""
    def fn(q, k, v, *, mask, scale):
        deed()
        return functions.right(q, k, v, mask=mask, scale=scale)
    return fn


def message_of(deed, **wishes):
    report = ringlab.verify(right_after(deed), **(U | wishes))
    return report.first_call or (
        report.broken[0].failure.message if report.broken else report.headline())


class Endings(unittest.TestCase):
    def test_they_are_verdicts(self):
        for deed, message in ((lambda: os._exit(0), "ended its process with exit code 0"),
                              (lambda: sys.exit(0), r"raised SystemExit\(0\)"),
                              (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended by SIGKILL"),
                              (os.abort, "ended by SIGABRT"),
                              (lambda: (print("so far"), os._exit(3)), "Its last words: so far")):
            with self.subTest(message):
                self.assertRegex(message_of(deed), message)

    def test_a_grading_script_does_not_end_with_0(self):
        for deed in ("os._exit(0)", "sys.exit(0)", "os.kill(os.getppid(), 15)", "os.close(3)",
                     "os.execv('/bin/true', ['true'])",
                     "threading.Thread(target=os._exit, args=[0]).start()"):
            script = textwrap.dedent(f"""
                import os, sys, threading, ringlab
                def cheat(q, k, v, *, mask, scale):
                    {deed}
                    return q[..., :1].repeat(v.shape[3], 3)
                report = ringlab.verify(cheat, laws=["U"], cases=4)
                sys.exit(0 if report.passed else 1)
                """)
            with self.subTest(deed):
                self.assertEqual(subprocess.run([sys.executable, "-c", script]).returncode, 1)

    def test_in_this_process_an_exit_is_a_verdict_too(self):
        self.assertIn("SystemExit", message_of(lambda: sys.exit(0), isolate=False))


class Hangs(unittest.TestCase):
    def ends_within(self, most_s, deed, **wishes):
        began = time.monotonic()
        message = message_of(deed, **wishes)
        self.assertLess(time.monotonic() - began, most_s)
        return message

    def test_seconds_hold_for_a_function_that_never_answers(self):
        message = self.ends_within(60, lambda: time.sleep(1000), seconds=2)
        self.assertIn("it gave no answer within", message)
        self.assertIn("isolate=False", message)

    def test_a_slow_start_is_called_slow(self):
        def imports():
            until = time.process_time() + 100
            while time.process_time() < until:
                pass

        message = self.ends_within(60, imports, timeout=2)
        self.assertRegex(message, "it is slow: it computed for .* s, with what it imports: timeout=")
        self.assertNotIn("isolate=False", message)

    def test_a_timeout_holds_for_a_process_that_has_left_its_group(self):
        def leaves():
            for leave in (os.setsid, lambda: os.setpgid(0, os.getpgid(os.getppid()))):
                try:
                    leave()
                except OSError:
                    pass
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            while True:
                pass

        message = self.ends_within(60, leaves, timeout=0.3)
        self.assertIn("it gave no answer within 0.3 s", message)

    def test_a_slow_one_is_no_hang(self):
        report = ringlab.verify(right_after(lambda: time.sleep(0.3)), **(U | {"cases": 50}), seconds=1)
        self.assertEqual(report.broken, ())


class ScarceMachine(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "only root can run as somebody who runs nothing else")
    def test_that_gives_no_processes_is_no_verdict(self):
        script = textwrap.dedent("""
            import os, resource, sys, ringlab, numpy_functions
            for become in (os.setgid, os.setuid):
                become(65534)
            resource.setrlimit(resource.RLIMIT_NPROC, [int(sys.argv[1])] * 2)
            try:
                report = ringlab.verify(numpy_functions.right, laws=["U"], cases=2, progress=False)
                print("passed" if report.passed else report.headline())
            except ringlab.RunError as error:
                print("RunError", error)
            """)
        path = os.pathsep.join(sys.path[:1] + [os.environ.get("PYTHONPATH", "")])
        said = [subprocess.run([sys.executable, "-c", script, str(processes)], capture_output=True, text=True,
                               env=os.environ | {"PYTHONPATH": path}).stdout for processes in range(1, 10)]
        for one in said:
            self.assertRegex(one, "^(passed|RunError )")
        self.assertIn("RunError", said[0] + said[2])


class Walls(unittest.TestCase):
    def finds_nothing(self, deed):
        """`deed` returns what it got hold of."""
        def tries():
            found = deed()
            if found:
                raise RuntimeError(f"got hold of {found}")

        self.assertRegex(message_of(tries), ": pass;")

    def test_no_descriptor_and_no_secret_is_inherited(self):
        ours = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(ours, True)
        os.environ["SOMEBODYS_TOKEN"] = "a secret"

        def look():
            kept = [n for n in range(4, 1024) if os.path.exists(f"/proc/self/fd/{n}")]
            secret = os.environ.get("SOMEBODYS_TOKEN") or os.getenv("SOMEBODYS_TOKEN")
            return kept or secret or b"SOMEBODYS" in pathlib.Path("/proc/self/environ").read_bytes()

        self.finds_nothing(look)
        os.close(ours)
        self.assertEqual(os.environ.pop("SOMEBODYS_TOKEN"), "a secret")

    def test_the_judge_is_out_of_reach(self):
        def reach():
            for number in (0, signal.SIGSTOP, signal.SIGTERM):
                try:
                    os.kill(JUDGE, number)
                    return "its judge"
                except OSError:
                    pass
            for file in ("mem", "environ", "maps", "fd/0"):
                try:
                    with open(f"/proc/{JUDGE}/{file}", "rb"):
                        return file
                except OSError:
                    pass
            return ""

        self.finds_nothing(reach)

    def test_the_network_is_out_of_reach(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()

            def connect():
                try:
                    return socket.create_connection(address, timeout=1)
                except OSError:
                    return ""

            self.finds_nothing(connect)

    def test_sockets_of_the_machine_are_out_of_reach(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{folder}/socket")
            server.listen()

            def connect():
                try:
                    with socket.socket(socket.AF_UNIX) as client:
                        return client.connect(f"{folder}/socket") or "a socket"
                except OSError:
                    return ""

            self.finds_nothing(connect)

    def test_files_of_others_are_out_of_reach(self):
        with tempfile.NamedTemporaryFile() as mine:
            os.chmod(mine.name, 0o600)

            def look():
                for path, mode in ((mine.name, "rb"), (mine.name, "ab"), ("/etc/shadow", "rb"),
                                   (__file__, "ab"), ("/proc/sys/kernel/core_pattern", "ab"),
                                   (f"{HERE}/linked.py", "rb"), (str(MARK), "wb"),
                                   ("/tmp/ringlab-mark", "wb")):
                    try:
                        with open(path, mode):
                            return path
                    except OSError:
                        pass
                for change in (lambda: os.chmod(mine.name, 0o666), lambda: os.utime(mine.name),
                               lambda: os.listxattr(mine.name)):
                    try:
                        change()
                        return "a file's metadata"
                    except OSError:
                        pass
                return ""

            os.symlink(mine.name, f"{HERE}/linked.py")
            sys.path.append(HERE)
            try:
                self.finds_nothing(look)
            finally:
                sys.path.remove(HERE)

    def test_ordinary_work_goes_on(self):
        """Modules that are not there yet, temporary files, caches, and ranks that talk to each other."""
        def work():
            import colorsys  # noqa: F401
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "file").write_text("text")
            cache = pathlib.Path.home() / ".cache" / "kernels"
            cache.mkdir(parents=True, exist_ok=True)
            (cache / "kernel.bin").write_bytes(b"code")
            with socket.create_server(("127.0.0.1", 0)) as server:
                thread = threading.Thread(target=server.accept)
                thread.start()
                socket.create_connection(server.getsockname(), timeout=100).close()
                thread.join()

        if "namespace" in str(ringlab.verify(functions.right, **U).settings.get("missing", "")):
            self.skipTest("no namespaces on this machine")
        self.assertRegex(message_of(work), ": pass;")

    def test_a_daemon_ends_with_the_verification(self):
        def daemon():
            subprocess.Popen(["sh", "-c", f"sleep 1; touch {MARK}; sleep 100"], start_new_session=True)

        self.assertIn(": pass;", message_of(daemon))
        time.sleep(1.5)
        self.assertFalse(MARK.exists())

    def test_answers_are_numbers_and_text(self):
        infinite = b'{"arrays": [["o", "float32", [1e999, 1, 1, 1]]]}'
        unnamed = b'{"arrays": [["raised", "float32", [0, 1, 1, 1]]]}'
        large = b'{"arrays": [["o", "float32", [1099511627776, 1, 1, 1]]]}'
        for answer in (None, b"[]", b'{"a":[1]', b"[" * 500000, b'{"arrays": []}', b"{}", infinite,
                       unnamed, large):
            def talks(q, k, v, *, mask, scale, answer=answer):
                os.write(3, b"\xff" * 8 if answer is None else struct.pack("<Q", len(answer)) + answer)
                return functions.right(q, k, v, mask=mask, scale=scale)

            self.assertFalse(ringlab.verify(talks, **U).passed)

    def test_memory_has_an_end(self):
        def much():
            kept = []
            while True:
                kept.append(np.empty(1 << 27, np.uint8))

        with self.assertRaisesRegex(ringlab.RunError, "MemoryError"):  # whoever it was: no verdict
            ringlab.verify(right_after(much), **U)


class Isolation(unittest.TestCase):
    def test_it_is_the_default_and_the_report_says_so(self):
        here = []
        report = ringlab.verify(right_after(lambda: here.append(1)), **U)
        self.assertTrue(report.passed and report.settings["isolated"] and not here)
        report = ringlab.verify(right_after(lambda: here.append(1)), **U, isolate=False)
        self.assertTrue(report.passed and here and not report.settings["isolated"])

    def test_state_is_kept_between_calls(self):
        calls = []

        def third_is_wrong(q, k, v, *, mask, scale):
            calls.append(1)
            o, lse = functions.right(q, k, v, mask=mask, scale=scale)
            return (o + 1 if len(calls) > 3 else o), lse

        self.assertFalse(ringlab.verify(third_is_wrong, **(U | {"cases": 20})).passed)

    def test_an_interruption_is_raised_and_nothing_is_left(self):
        timer = threading.Timer(1, os.kill, (JUDGE, signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            ringlab.verify(right_after(lambda: time.sleep(100)), **U)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_it_can_start_compilers(self):
        self.assertIn(": pass;", message_of(lambda: subprocess.run(["true"], check=True)))

    def test_it_can_start_processes_of_its_own_kind_or_says_how(self):
        """In a script without a suffix, whose text each process that is spawned reads again."""
        script = pathlib.Path(HERE, "a_script")
        script.write_text(textwrap.dedent("""
            import multiprocessing, sys, ringlab, numpy_functions
            def fn(q, k, v, *, mask, scale):
                if sys.argv[1] == "manager":
                    multiprocessing.Manager().dict()
                else:
                    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
                        pool.map(abs, [1])
                return numpy_functions.right(q, k, v, mask=mask, scale=scale)
            if __name__ == "__main__":
                print(ringlab.verify(fn, laws=["U"], cases=1, progress=False, timeout=60))
            """))
        path = os.pathsep.join(sys.path[:1] + [os.environ.get("PYTHONPATH", "")])
        for kind, said in (("fork", ": pass;"), ("spawn", ": pass;"), ("forkserver", "fork and spawn work"),
                           ("manager", "fork and spawn work")):
            with self.subTest(kind):
                done = subprocess.run([sys.executable, script, kind], capture_output=True, text=True,
                                      env=os.environ | {"PYTHONPATH": path})
                self.assertIn(said, done.stdout, done.stderr)

    def test_torch_that_has_used_its_threads_before(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not there")
        torch.ones(2000, 2000) @ torch.ones(2000, 2000)
        torch.ones(4_000_000).exp().sum()

        def fn(q, k, v, *, mask, scale):
            torch.ones(4_000_000).exp().sum()
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask.matrix(), scale=scale)

        report = ringlab.verify(fn, **U, arrays="torch", limits=ringlab.Limits(empty_rows=False))
        self.assertTrue(report.passed, str(report))


if __name__ == "__main__":
    sys.exit(unittest.main())
