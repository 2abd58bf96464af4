"""PyPI agent-sandbox-backends 0.1.0, the Python package whose history format we share: what it does in a sandbox, and
that each of its operations is one row of the history there."""

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path

from agent_sandbox_backends import UploadConfig, UploadSpec, create_opensandbox_backend

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
    "command.execute": 4,
    "file.write": 5,  # one, and of an upload of two files: into the staging directory, and from there
    "file.read": 9,  # one, and of that upload: before, to check, before again, and to check again
    "file.list": 1,
    "file.delete": 3,  # one, and the upload's staging
    "file.upload": 3,
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
    await step("upload-few", lambda: upload(b, 2))
    await step("upload-many", lambda: upload(b, 100))
    await step("upload-again", lambda: upload(b, 100, skipped=100))
    await step("uploaded", lambda: check(b.execute("cat up100/d*/*.txt | wc -l"), lambda r: r.stdout.strip() == b"100"))
    await step("pause", lambda: check(b.pause(), lambda i: i.state.value == "paused"))
    await step("resume", lambda: check(b.resume(), lambda i: i.state.value == "running"))
    await step("execute-after", lambda: check(b.execute("echo back"), lambda r: r.stdout.strip() == b"back"))


async def upload(b, files, skipped=0):
    """Few files are written one by one, many come as an archive."""
    with tempfile.TemporaryDirectory() as here:
        for i in range(files):
            path = Path(here, f"d{i % 7}", f"文件 {i}.txt")
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{i}\n")
        spec = UploadSpec(source=here, target=f"/workspace/up{files}")
        r = await b.upload_local(spec, config=UploadConfig(allowed_local_roots=(Path(here),)))
    return need((r.uploaded_files, r.skipped_files, r.failed_files) == (files - skipped, skipped, 0), r)


def recorded(sandbox_id):
    """Each operation is one row, and there is no row of what it did for its own record."""
    want = {"sandbox.create": 1, "sandbox.delete": 1} | DONE
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
