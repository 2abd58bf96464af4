# PyPI opensandbox-mcp 1.1.1 over stdio, driven by the official MCP client (PyPI mcp).
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from harness import IMAGE, TAG, A, done, need, step

BIN = os.path.join(os.path.dirname(sys.executable), "opensandbox-mcp")
P = StdioServerParameters(
    command=BIN,
    args=["--domain", A.hostport, "--protocol", A.scheme, "--api-key", A.key]
    + (["--use-server-proxy"] if A.proxy else []),
    env=dict(os.environ),
)


async def main():
    async with stdio_client(P, errlog=open(os.devnull, "w")) as (r, w), ClientSession(r, w) as s:
        await s.initialize()
        tools = {t.name for t in (await s.list_tools()).tools}
        await step("list-tools", lambda: need({"sandbox_create", "command_run", "file_read"} <= tools, tools))

        async def call(n, **k):
            x = await s.call_tool(n, k)
            txt = " ".join(getattr(c, "text", "") for c in x.content)
            if getattr(x, "isError", getattr(x, "is_error", False)):
                raise AssertionError(txt)
            try:
                return json.loads(txt)
            except ValueError:
                return txt

        sid = None

        async def create():
            nonlocal sid
            x = await call(
                "sandbox_create",
                image=IMAGE,
                timeout_seconds=300,
                env={"FOO": "bar"},
                metadata={"cl": TAG},
                resource={"cpu": "500m", "memory": "512Mi"},
            )
            sid = x.get("sandbox_id") or x.get("id")
            return need(sid, x)

        if not await step("sandbox_create", create):
            return
        k = {"sandbox_id": sid}

        async def chk(n, sub="", **a):
            x = await call(n, **k, **a)
            return need(sub in json.dumps(x), x)

        await step("sandbox_get_info", lambda: chk("sandbox_get_info", "Running"))
        await step("sandbox_list", lambda: call("sandbox_list"))
        await step("sandbox_healthcheck", lambda: chk("sandbox_healthcheck"))
        await step("command_run", lambda: chk("command_run", "hi bar", command="echo hi $FOO"))
        await step("command_run-stderr", lambda: chk("command_run", "oops", command="echo oops >&2; exit 4"))

        async def bg():
            x = await call("command_run", **k, command="sleep 60", background=True)
            i = x.get("id") or x.get("execution_id")
            await asyncio.sleep(0.5)
            return await call("command_interrupt", **k, execution_id=i)

        await step("command_run-background-interrupt", bg)
        await step("file_write", lambda: chk("file_write", path="/tmp/m/a.txt", content="héllo one"))
        await step("file_read", lambda: chk("file_read", "one", path="/tmp/m/a.txt"))
        await step("file_search", lambda: chk("file_search", "/tmp/m/a.txt", path="/tmp/m", pattern="*.txt"))
        await step(
            "file_replace_contents",
            lambda: chk(
                "file_replace_contents", entries=[{"path": "/tmp/m/a.txt", "old_content": "one", "new_content": "two"}]
            ),
        )
        await step(
            "file_create_directories",
            lambda: chk("file_create_directories", entries=[{"path": "/tmp/m/d", "mode": 755}]),
        )
        await step("file_move", lambda: chk("file_move", entries=[{"src": "/tmp/m/a.txt", "dest": "/tmp/m/b.txt"}]))
        await step("file_read-after", lambda: chk("file_read", "two", path="/tmp/m/b.txt"))
        await step("file_delete", lambda: chk("file_delete", paths=["/tmp/m/b.txt"]))
        await step("file_delete_directories", lambda: chk("file_delete_directories", paths=["/tmp/m"]))
        await step("sandbox_get_metrics", lambda: chk("sandbox_get_metrics", "memory"))
        await step("sandbox_get_endpoint", lambda: chk("sandbox_get_endpoint", "endpoint", port=44772))
        await step("sandbox_renew", lambda: chk("sandbox_renew", timeout_seconds=400))
        await step("sandbox_kill", lambda: chk("sandbox_kill"))


asyncio.run(asyncio.wait_for(main(), 200))
done()
