"""PyPI deepagents, through langchain-sandbox-opensandbox, with results that are over its limit: it keeps them as files of the
sandbox and tells the model where they are."""

import asyncio
import re
from datetime import timedelta

from deepagents import create_deep_agent
from langchain_opensandbox import OpenSandboxBackend
from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync

from harness import IMAGE, A, done, need, step
from scripted import Script, play

LINE = "/workspace/one.txt"
NUMBERS = "".join(f"{n}\n" for n in range(1, 60001)).encode()
CALLS = [
    ("seq", "execute", {"command": "seq 1 60000"}),
    ("line", "execute", {"command": rf"head -c 300000 /dev/zero | tr '\0' x > {LINE}"}),
    ("read", "read_file", {"file_path": LINE}),
    ("kept", "execute", {"command": "ls -A /large_tool_results"}),
]


def create():
    config = ConnectionConfigSync(domain=A.hostport, protocol=A.scheme, api_key=A.key, use_server_proxy=A.proxy)
    return SandboxSync.create(IMAGE, timeout=timedelta(minutes=10), connection_config=config)


def work(sandbox):
    agent = create_deep_agent(model=Script(calls=CALLS), backend=OpenSandboxBackend(sandbox=sandbox))
    return play(agent, "Make much output")[1]


def whole(sandbox, notice):
    """FB-041: the file that the notice names is the output, to the byte. The adapter loses the last newline of all, and
    Deep Agents adds a line."""
    path = re.search(r"/large_tool_results/[\w.-]+", notice)
    need(path and len(notice) < 80_000, notice)
    got = sandbox.files.read_bytes(path[0])
    wanted = NUMBERS.removesuffix(b"\n") + b"\n[Command succeeded with exit code 0]"
    return need(len(NUMBERS) == 348894 and got == wanted, f"{len(got)} bytes, want {len(wanted)}")


def kept(results):
    """The names of the files that hold results."""
    return results["kept"].text.split("\n[")[0].split()


async def main():
    sandbox = await step("create", lambda: asyncio.to_thread(create))
    if not sandbox:
        return
    results = await step("work", lambda: asyncio.to_thread(work, sandbox), 120) or {}
    await step("FB-041-whole-output", lambda: whole(sandbox, results["seq"].text))
    # FB-043: what a read gives is never itself kept as a file to be read.
    await step("FB-043-read", lambda: need(results["read"].text.count("x") > 70_000, results["read"].text))
    await step("FB-043-kept-once", lambda: need("seq" in kept(results) and "read" not in kept(results), kept(results)))
    await step("kill", lambda: sandbox.kill() is None)


asyncio.run(main())
done()
