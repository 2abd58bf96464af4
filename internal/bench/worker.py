"""One client of an OpenSandbox service, for the measurements: reads a task a
line, as JSON, and answers with what it took.

    python worker.py official|seed URL KEY
"""

import asyncio
import json
import os
import resource
import sys
import time
from datetime import timedelta

WHICH, URL, KEY = sys.argv[1:4]
IMAGE = "python:3.12"


class Official:
    async def open(self):
        from opensandbox import Sandbox
        from opensandbox.config.connection import ConnectionConfig

        protocol, domain = URL.split("://")
        connection = ConnectionConfig(domain=domain, protocol=protocol, use_server_proxy=True, api_key=KEY, request_timeout=timedelta(minutes=30))
        self.box = await Sandbox.create(IMAGE, connection_config=connection, timeout=timedelta(hours=1))

    async def run(self, line):
        done = await self.box.commands.run(line)
        return sum(len(part.text) for part in done.logs.stdout)

    async def write(self, path, data):
        await self.box.files.write_file(path, data)

    async def read(self, path):
        return len(await self.box.files.read_bytes(path))

    async def close(self):
        await self.box.kill()


class Seed:
    async def open(self):
        from agent_sandbox_backends import CleanupPolicy, ConcurrencyConfig, create_opensandbox_backend

        self.box = await create_opensandbox_backend(
            URL, api_key=KEY, image=IMAGE, cleanup=CleanupPolicy.ON_CLOSE, concurrency=ConcurrencyConfig(max_parallel_commands=32)
        )

    async def run(self, line):
        return len((await self.box.execute(line)).stdout)

    async def write(self, path, data):
        await self.box.write_file(path, data)

    async def read(self, path):
        return len(await self.box.read_file(path))

    async def close(self):
        await self.box.close()


async def act(client, task):
    do = task["do"]
    if do == "open":
        await client.open()
        return await client.run("true")
    if do == "run":
        return await client.run(task["line"])
    if do == "turns":
        for _ in range(task["n"]):
            await client.run(task["line"])
        return task["n"]
    if do == "many":
        await asyncio.gather(*(client.run(task["line"]) for _ in range(task["n"])))
        return task["n"]
    if do == "write":
        data = os.urandom(task["n"])
        await client.write(task["path"], data)
        return len(data)
    if do == "read":
        return await client.read(task["path"])
    if do == "close":
        await client.close()
        return 0
    raise ValueError(do)


async def main():
    client = {"official": Official, "seed": Seed}[WHICH]()
    while line := await asyncio.to_thread(sys.stdin.readline):
        began, answer = time.perf_counter(), {}
        try:
            answer["n"] = await act(client, json.loads(line))
        except Exception as e:  # noqa: BLE001
            answer["error"] = f"{type(e).__name__}: {e}"
        answer["seconds"] = time.perf_counter() - began
        answer["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(answer), flush=True)


asyncio.run(main())
