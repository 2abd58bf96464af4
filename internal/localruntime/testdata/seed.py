"""Drives the published package agent-sandbox-backends against a server.

Prints a line of JSON: what each step gave.
"""

import asyncio
import json
import sys
import time

from agent_sandbox_backends import CleanupPolicy, HistoryConfig, HistoryMode, create_opensandbox_backend

steps = {}


async def step(name, call):
    began = time.perf_counter()
    try:
        steps[name] = {"ok": await call}
    except Exception as error:  # told, not raised: the next step is tried too
        steps[name] = {"error": f"{type(error).__name__}: {error}"}
    steps[name]["seconds"] = round(time.perf_counter() - began, 3)


async def execute(backend, command, **more):
    result = await backend.execute(command, **more)
    return {"stdout": result.stdout.decode(), "stderr": result.stderr.decode(), "exit_code": result.exit_code, "state": result.state.value,
            "id": result.command_id}


async def write(backend, path, content, **more):
    result = await backend.write_file(path, content, **more)
    return result.entry.content_hash


async def main(url, key):
    backend = await create_opensandbox_backend(
        url, api_key=key, image="host", sandbox_name="seed", cleanup=CleanupPolicy.ON_CLOSE,
        history=HistoryConfig(mode=HistoryMode.SANDBOX, ttl_days=3),
    )
    print(json.dumps({"sandbox": backend.ref.sandbox_id}), flush=True)
    sys.stdin.readline()  # the other writer begins
    with backend.agent_context(agent_id="研究", thread_id="thread-1", run_id="run-1"):
        await step("execute", execute(backend, "echo one; echo two; echo err >&2"))
        await step("fail", execute(backend, "echo bad; exit 3", cwd="/tmp"))
        await step("many", asyncio.gather(*(execute(backend, f"echo {i}") for i in range(4))))
        await step("write", write(backend, "/workspace/a.txt", "hello\n".encode()))

        async def read():
            return (await backend.read_file("/workspace/a.txt")).decode()

        async def listing():
            return sorted(entry.path for entry in await backend.list_files("/workspace"))

        async def pause():
            return (await backend.pause()).state.value

        async def resume():
            return (await backend.resume()).state.value

        async def missing():
            return (await backend.read_file("/workspace/none")).decode()

        async def health():
            return await backend.history_store.health()

        async def feed():
            return await backend.history_store.query_changes(limit=1000)

        async def config():
            return (await backend.history_store.config_get())["config"]["ttl_days"]

        await step("read", read())
        await step("list", listing())
        await step("missing", missing())
        await step("delete", backend.delete_file("/workspace/a.txt"))
        await step("health", health())
        await step("config", config())
        await step("feed", feed())
        if "ok" in steps["execute"]:
            first = steps["feed"]["ok"]["changes"][-1]["event_id"]
            await step("operation", backend.history_store.get_operation(first))
        await step("pause", pause())
        await step("resume", resume())
        await step("after", execute(backend, "echo still"))
    print(json.dumps(steps), flush=True)
    sys.stdin.readline()  # the history has been looked at
    await step("close", backend.close())
    print(json.dumps(steps["close"]), flush=True)


asyncio.run(main(*sys.argv[1:]))
