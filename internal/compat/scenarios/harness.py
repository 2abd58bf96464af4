"""What the scenarios share. Each prints `ok NAME` or `FAIL NAME: reason` for each step, and last 'N passed, N failed'."""

import argparse
import asyncio
import inspect
import json
import os
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--url", default=os.environ.get("CL_URL", "http://127.0.0.1:7717"))
parser.add_argument("--key", default=os.environ.get("CL_KEY", ""))
parser.add_argument("--proxy", action="store_true", help="reach sandboxes through the server")
A = parser.parse_args()
A.url = A.url.rstrip("/")
A.scheme, A.hostport = A.url.split("://")

IMAGE = os.environ.get("CL_IMAGE", "python:3.12")
TAG = f"cl-{os.getpid()}"
passed = failed = 0


def report(name, err=None):
    global passed, failed
    if err is None:
        passed += 1
        print(f"ok {name}", flush=True)
    else:
        failed += 1
        print(f"FAIL {name}: {' '.join(str(err).split())[:260]}", flush=True)


async def step(name, fn, limit=90):
    """Run fn (plain or async, no arguments); a raised exception or False is a failure. Returns fn's value or None."""
    try:
        r = fn()
        if inspect.isawaitable(r):
            r = await asyncio.wait_for(r, limit)
        if r is False:
            raise AssertionError("result not as expected")
        report(name)
        return r if r is not None else True
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        report(name, f"{type(e).__name__}: {e}")
        return None


def need(cond, msg="not as expected"):
    if not cond:
        raise AssertionError(str(msg)[:240])
    return True


def history(sandbox_id, *only):
    """What glassbox exports of a sandbox's history, for which it needs no client."""
    command = [os.environ["GLASSBOX"], "history", "export", sandbox_id, *only]
    ran = subprocess.run(command, capture_output=True, timeout=60)
    need(ran.returncode == 0, ran.stderr.decode())
    return json.loads(ran.stdout)


def done():
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.stdout.flush()
    os._exit(0)
