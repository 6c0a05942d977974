"""A process that loads everything and forks: commands start at once, and may be killed at a chosen step.

Run as a program, it reads one job per line, and answers with a line: wait status and peak memory.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
ROOMS = str(HERE.parents[2] / "hierdp") + os.sep
"""Steps are counted in hierdp's own functions: each call, of Python or C, and each return."""


class Zygote:
    """Runs `hierdp` in forked processes, one at a time, in the working directory of the caller."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def run(self, arguments, **job):
        """Exit status (negative: the signal that killed it), output, and peak memory in bytes of a process.

        ``die_at``: the step before which to kill it. ``steps``: a file for the names of all steps.
        ``before``: Python code to run first.
        """
        job = {"arguments": list(map(str, arguments)), "folder": os.getcwd(), **job}
        print(json.dumps(job), file=self.process.stdin, flush=True)
        status, peak = json.loads(self.process.stdout.readline())
        said = Path("said.txt")
        text = said.read_text(errors="replace")
        said.unlink()
        return os.waitstatus_to_exitcode(status), text, peak * (1 if sys.platform == "darwin" else 1024)


def serve():
    """Load and compile everything by making some releases, then fork a child for each line."""
    from attacked import MECHANISMS, TABLE, releasing
    from click.testing import CliRunner

    from hierdp.cli import main

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("in.csv").write_text(TABLE)
        for mechanism in MECHANISMS:
            for arguments in (releasing(mechanism, mechanism, 1), ["check", mechanism]):
                done = CliRunner().invoke(main, arguments)
                assert done.exit_code == 0, done.output
        os.chdir("/")
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            work(json.loads(line))
        _, status, usage = os.wait4(child, 0)
        print(json.dumps([status, usage.ru_maxrss]), flush=True)


def work(job):
    """Run one command line, then end the process."""
    os.chdir(job["folder"])
    said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    exec(job.get("before", ""), {})
    names = []
    if "die_at" in job or "steps" in job:
        sys.setprofile(counting(names, job.get("die_at")))
    status = 0
    try:
        sys.argv = ["hierdp", *job["arguments"]]
        from hierdp.__main__ import run

        run()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1 if end.code else 0
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    sys.setprofile(None)
    if "steps" in job:
        Path(job["steps"]).write_text(json.dumps(names))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def counting(names, die_at):
    """A profile function that records the name of each step, and kills the process before step `die_at`."""

    def look(frame, event, what):
        code = frame.f_code
        if not code.co_filename.startswith(ROOMS):
            return
        if len(names) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        called = f" {what.__name__}" if event.startswith("c_") else ""
        names.append(f"{Path(code.co_filename).stem}.{code.co_name} {event}{called}")

    return look


if __name__ == "__main__":
    sys.path.append(str(HERE.parents[2]))
    serve()
