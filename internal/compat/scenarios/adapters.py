# One scenario for the LangChain and Deep Agents adapters; CL_ADAPTER says which: lc-os, lcs-os, da-os, da-osb (an environment each).
import asyncio
import os
import time
from datetime import timedelta as td

from harness import IMAGE, A, done, need, step

W = os.environ["CL_ADAPTER"]
R = {"cpu": "500m", "memory": "512Mi"}


def open_backend():
    """Returns (backend, close) for the adapter named by CL_ADAPTER."""
    if W == "da-osb":
        from deepagents_opensandbox_backend import OpenSandboxBackend

        b = OpenSandboxBackend.create(
            domain=A.hostport,
            image=IMAGE,
            entrypoint=["tail", "-f", "/dev/null"],
            api_key=A.key,
            use_server_proxy=A.proxy,
            timeout=td(minutes=20),
        )
        return b, b.kill
    from opensandbox import SandboxSync
    from opensandbox.config import ConnectionConfigSync

    s = SandboxSync.create(
        IMAGE,
        resource=R,
        timeout=td(minutes=20),
        connection_config=ConnectionConfigSync(
            domain=A.hostport, protocol=A.scheme, api_key=A.key, use_server_proxy=A.proxy
        ),
    )
    if W == "da-os":
        from deepagents_opensandbox import OpensandboxBackend as B
    elif W == "lc-os":
        from langchain_opensandbox.backend import OpenSandboxSandbox as B
    else:
        from langchain_opensandbox import OpenSandboxBackend as B
    return B(sandbox=s), s.kill


def text(b):
    """A character that lies across a bound of bytes does not make a file one of bytes."""
    for n in (*range(8188, 8194), 4094, 32767, 65535):
        path = f"/tmp/q/euro-{n}.txt"
        need(b.write(path, "a" * n + "€€€\n").error is None)
        need(str(b.read(path)).count("€€€") == 1, str(b.read(path))[-200:])
    return True


async def deep():
    box = {}

    async def op():
        box["b"], box["close"] = await asyncio.to_thread(open_backend)

    if not await step("create", op):
        return
    b = box["b"]
    await step("execute", lambda: need(b.execute("echo hi").output.strip() == "hi"))
    await step("execute-exit-code", lambda: need(b.execute("exit 5").exit_code == 5))

    def tmo():
        t = time.time()
        r = b.execute("sleep 20", timeout=2)
        return need(time.time() - t < 12 and r.exit_code != 0, r)

    await step("execute-timeout", tmo)
    await step(
        "write-read",
        lambda: need(b.write("/tmp/q/a.txt", "one\ntwo\n").error is None and "two" in str(b.read("/tmp/q/a.txt"))),
    )
    await step(
        "edit", lambda: need(b.edit("/tmp/q/a.txt", "two", "2").error is None and "2" in str(b.read("/tmp/q/a.txt")))
    )
    await step(
        "ls-glob-grep",
        lambda: need(
            "a.txt" in str(b.ls("/tmp/q"))
            and "a.txt" in str(b.glob("*.txt", "/tmp/q"))
            and "one" in str(b.grep("one", "/tmp/q"))
        ),
    )
    await step("FB-017-text", lambda: text(b))
    d = os.urandom(500000)
    await step(
        "upload-download",
        lambda: need(
            b.upload_files([("/tmp/q/b.bin", d)])[0].error is None
            and b.download_files(["/tmp/q/b.bin"])[0].content == d
        ),
    )
    await step("download-missing", lambda: need(b.download_files(["/tmp/none"])[0].error == "file_not_found"))
    await step("kill", lambda: (box["close"](), True)[1])


asyncio.run(deep())
done()
