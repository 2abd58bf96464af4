"""PyPI agent-sandbox-backends 0.1.0, the Python package whose history format we share: what it does in a sandbox, and
that each of its operations is one row of the history there."""

import asyncio
import json
from collections import Counter

from agent_sandbox_backends import create_opensandbox_backend

from harness import IMAGE, A, done, history, need, step

PATH = "/workspace/notes.txt"
TEXT = "héllo\nline2\n".encode()


async def main():
    backend = await step(
        "create",
        lambda: create_opensandbox_backend(
            A.url, api_key=A.key, sandbox_name="seed", image=IMAGE, use_server_proxy=A.proxy
        ),
    )
    if not backend:
        return
    sandbox_id = backend.ref.sandbox_id
    with backend.agent_context(agent_id="research-agent", thread_id="thread-1", run_id="run-1"):
        await work(backend)
    await step("close", backend.close)
    await step("history", lambda: recorded(sandbox_id))
    await step("history-actor", lambda: acted(sandbox_id))


# What work does, by the names of the history.
DONE = {
    "command.execute": 3,
    "file.write": 1,
    "file.read": 1,
    "file.list": 1,
    "file.delete": 1,
    "sandbox.pause": 1,
    "sandbox.resume": 1,
}


async def work(b):
    async def check(call, holds):
        result = await call
        return need(holds(result), result)

    await step("execute", lambda: check(b.execute("echo hi"), lambda r: (r.stdout.strip(), r.exit_code) == (b"hi", 0)))
    await step("execute-exit-code", lambda: check(b.execute("exit 3"), lambda r: r.exit_code == 3))
    await step("write", lambda: check(b.write_file(PATH, TEXT), lambda _: True))
    await step("read", lambda: check(b.read_file(PATH), lambda data: data == TEXT))
    await step("list", lambda: check(b.list_files("/workspace"), lambda l: PATH in [e.path for e in l]))
    await step("delete", lambda: check(b.delete_file(PATH), lambda _: True))
    await step("pause", lambda: check(b.pause(), lambda i: i.state.value == "paused"))
    await step("resume", lambda: check(b.resume(), lambda i: i.state.value == "running"))
    await step("execute-after", lambda: check(b.execute("echo back"), lambda r: r.stdout.strip() == b"back"))


def recorded(sandbox_id):
    """Each operation is one row, and there is no row of what it did for its own record."""
    want = {"sandbox.create": 1} | DONE
    found = Counter(o["type"] for o in history(sandbox_id))
    wrong = {kind: f"{found[kind]}, want {n}" for kind, n in want.items() if found[kind] != n}
    wrong |= {kind: f"{n}, want none" for kind, n in found.items() if kind not in want and kind != "sandbox.renew"}
    return need(not wrong, json.dumps(wrong))


def acted(sandbox_id):
    """All that was done in the context has its actor."""
    rows = [o for o in history(sandbox_id) if o["actor"].get("run_id") == "run-1"]
    need(all(o["actor"]["id"] == "research-agent" and o["actor"]["thread_id"] == "thread-1" for o in rows), rows)
    found = Counter(o["type"] for o in rows)
    return need(found == DONE, found)


asyncio.run(main())
done()
