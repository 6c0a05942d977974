"""A PostgreSQL server for the tests; if none can be started, they are skipped with a message."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "s3cr3t!pass"


def why_not():
    """Why no server can be started here; empty if one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'hierdp[postgres]'"
    if _binary("postgres") is None or _binary("initdb") is None:
        return "there is no PostgreSQL server on this machine"
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


@contextmanager
def server():
    """``(url, password)`` of a running server."""
    home = Path(tempfile.mkdtemp(prefix="hierdp-postgres-"))
    (home / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        shutil.chown(home, "postgres")
        shutil.chown(home / "password", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(home / "data")
    trust = ["--pwfile", str(home / "password"), "--auth", "scram-sha-256", "-U", "ann", "-E", "UTF8"]
    subprocess.run(_as_owner("initdb", "-D", data, *trust, "--no-sync"), check=True, capture_output=True)
    options = ["-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", str(home), "-F"]
    running = subprocess.Popen(
        _as_owner("postgres", *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/postgres"
        _wait(url, running)
        yield url, PASSWORD
    finally:
        running.send_signal(signal.SIGINT)  # without waiting for clients
        running.wait(timeout=300)
        shutil.rmtree(home, ignore_errors=True)


def _wait(url, running):
    import psycopg

    until = time.monotonic() + 300
    while running.poll() is None and time.monotonic() < until:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise RuntimeError("PostgreSQL does not start")


def _binary(name):
    found = shutil.which(name)
    if found is not None:
        return found
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(places[-1]) if places else None


def _as_owner(name, *arguments):
    command = [_binary(name), *arguments]
    if os.geteuid() != 0:
        return command
    owner = pwd.getpwnam("postgres")
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups", *command]
