# PyPI opensandbox-mcp 1.1.1 over HTTP: two clients of one server, each with a sandbox of its own, whose messages have equal ids.
import asyncio
import json
import os
import socket
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from harness import IMAGE, A, done, need, step

BIN = os.path.join(os.path.dirname(sys.executable), "opensandbox-mcp")
ROUNDS = 200


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


async def call(session, tool, **arguments):
    answer = await session.call_tool(tool, arguments)
    return json.loads(answer.content[0].text)


async def client(url, work):
    """Runs work(session, sandbox id) in a sandbox of its own."""
    async with streamable_http_client(url) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        made = await call(session, "sandbox_create", image=IMAGE, timeout_seconds=300)
        sandbox = made.get("sandbox_id") or made["id"]
        try:
            return await work(session, sandbox)
        finally:
            await call(session, "sandbox_kill", sandbox_id=sandbox)


async def apart(url):
    """FB-063: who answers late and who answers at once each get their own answer, every time."""
    both = asyncio.Barrier(2)

    def says(line, word):
        async def work(session, sandbox):
            for n in range(ROUNDS):
                await both.wait()
                got = json.dumps(await call(session, "command_run", sandbox_id=sandbox, command=f"{line} {word}-$((n={n}))"))
                need(f"{word}-{n}" in got, got)
            return session
        return work

    late, soon = await asyncio.gather(client(url, says("sleep 0.02; echo", "A")), client(url, says("echo", "B")))
    return need(late is not soon)


async def main():
    port = free_port()
    arguments = ["--transport", "streamable-http", "--host", "127.0.0.1", "--port", str(port)]
    arguments += ["--domain", A.hostport, "--protocol", A.scheme, "--api-key", A.key]
    server = await asyncio.create_subprocess_exec(
        BIN, *arguments, *(["--use-server-proxy"] if A.proxy else []), stderr=asyncio.subprocess.DEVNULL
    )

    async def listens():
        while True:
            try:
                (await asyncio.open_connection("127.0.0.1", port))[1].close()
                return True
            except OSError:
                await asyncio.sleep(0.1)

    await step("serve", listens, 60)
    await step("FB-063-apart", lambda: apart(f"http://127.0.0.1:{port}/mcp"), 240)
    server.terminate()
    await server.wait()


asyncio.run(main())
done()
