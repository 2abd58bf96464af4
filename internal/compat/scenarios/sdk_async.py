# PyPI opensandbox (async API): main surface. Runs with 1.1.1 and 0.1.16.
import asyncio
import time
from datetime import timedelta as td

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from opensandbox.manager import SandboxManager
from opensandbox.models.execd import ExecutionHandlers, RunCommandOpts
from opensandbox.models.filesystem import ContentReplaceEntry, MoveEntry, SearchEntry, SetPermissionEntry, WriteEntry
from opensandbox.models.sandboxes import SandboxFilter, SnapshotFilter

from harness import IMAGE, TAG, A, done, need, step

try:
    from opensandbox.models.filesystem import DirectoryListEntry
except ImportError:
    DirectoryListEntry = None
C = ConnectionConfig(
    domain=A.hostport, protocol=A.scheme, api_key=A.key, use_server_proxy=A.proxy, request_timeout=td(seconds=60)
)
R = {"cpu": "500m", "memory": "512Mi"}


async def main():
    mk = lambda **k: Sandbox.create(
        IMAGE, connection_config=C, resource=R, timeout=td(minutes=5), metadata={"cl": TAG}, **k
    )
    sb = await step("create", lambda: mk(env={"FOO": "bar"}))
    m = await SandboxManager.create(C)
    if not sb:
        done()
    c, f, text = sb.commands, sb.files, lambda e: "".join(o.text for o in e.logs.stdout)

    async def run(cmd, **k):
        return await c.run(cmd, opts=RunCommandOpts(**k))

    async def a(co, pred):
        r = await co
        return need(pred(r), r)

    await step("health", lambda: a(sb.is_healthy(), bool))
    await step(
        "info",
        lambda: a(sb.get_info(), lambda i: i.status.state == "Running" and i.metadata["cl"] == TAG and i.expires_at),
    )
    await step(
        "run", lambda: a(run("echo hi $FOO"), lambda e: text(e).strip() == "hi bar" and e.exit_code == 0 and e.id)
    )
    await step(
        "run-stderr-exit",
        lambda: a(
            run("echo oops >&2; exit 7"),
            lambda e: e.exit_code == 7 and e.error.value == "7" and e.logs.stderr[0].text.strip() == "oops",
        ),
    )
    await step(
        "run-cwd-envs",
        lambda: a(
            run("pwd; echo $Z", working_directory="/usr", envs={"Z": "9"}),
            lambda e: "/usr" in text(e) and "9" in text(e),
        ),
    )
    await step("run-uid", lambda: a(run("id -u", uid=1000, gid=1000), lambda e: text(e).strip() == "1000"))

    async def stream():
        seen = []

        async def on(m_):
            seen.append((time.time(), m_.text))

        await c.run("for i in 1 2 3; do echo $i; sleep 0.5; done", handlers=ExecutionHandlers(on_stdout=on))
        return need(len(seen) >= 3 and seen[-1][0] - seen[0][0] > 0.6, seen)

    await step("run-stream", stream)

    async def tmo():
        t0 = time.time()
        e = await run("sleep 30", timeout=td(seconds=2))
        return need(time.time() - t0 < 8 and e.exit_code != 0 and e.error, e)

    await step("run-timeout", tmo)

    async def intr():
        ids = asyncio.Queue()

        async def oi(i):
            await ids.put(i.id)

        t = asyncio.create_task(c.run("sleep 60", handlers=ExecutionHandlers(on_init=oi)))
        i = await asyncio.wait_for(ids.get(), 10)
        await c.interrupt(i)
        e = await asyncio.wait_for(t, 15)
        return need(e.error, e)

    await step("run-interrupt", intr)

    async def bg():
        e = await run("echo bg; sleep 1; echo end", background=True)
        s1 = await c.get_command_status(e.id)
        need(s1.running, s1)
        await asyncio.sleep(2)
        s = await c.get_command_status(e.id)
        l = await c.get_background_command_logs(e.id, 0)
        return need(s.exit_code == 0 and not s.running and "end" in l.content and l.cursor is not None, (s, l))

    await step("run-background-status-logs", bg)

    async def sess():
        s = await c.create_session(working_directory="/tmp")
        await c.run_in_session(s, "export Q=5; cd /usr")
        e = await c.run_in_session(s, "echo $Q; pwd")
        await c.delete_session(s)
        return need("5" in text(e) and "/usr" in text(e), e)

    await step("session", sess)
    if hasattr(c, "set_env"):
        await step("set-env", lambda: a(c.set_env("PV", "z z"), lambda _: True)) and await step(
            "set-env-seen", lambda: a(run("echo $PV"), lambda e: text(e).strip() == "z z")
        )
    if DirectoryListEntry:
        await step("run-argv", lambda: a(c.run(["printf", "%s", "a b"]), lambda e: text(e).strip() == "a b"))
    await step("file-write-read", lambda: a(f.write_file("/tmp/d/a.txt", "héllo\nline2\nl3\n"), lambda _: True))
    await step("file-read", lambda: a(f.read_file("/tmp/d/a.txt"), lambda s: s == "héllo\nline2\nl3\n"))
    await step(
        "file-bytes-range", lambda: a(f.read_bytes("/tmp/d/a.txt", range_header="bytes=7-11"), lambda b: b == b"line2")
    )
    await step("file-lines", lambda: a(f.read_file("/tmp/d/a.txt", offset=2, limit=1), lambda s: s.strip() == "line2"))

    async def big():
        d = bytes(range(256)) * 8192
        await f.write_files(
            [WriteEntry(path="/tmp/d/b.bin", data=d, mode=600), WriteEntry(path="/tmp/d/c.py", data="x", mode=644)]
        )
        return need(await f.read_bytes("/tmp/d/b.bin") == d)

    await step("file-2MiB-multi", big)
    await step(
        "file-info",
        lambda: a(
            f.get_file_info(["/tmp/d/b.bin"]),
            lambda i: i["/tmp/d/b.bin"].size == 2097152 and i["/tmp/d/b.bin"].mode == 600,
        ),
    )
    await step("file-mkdir", lambda: a(f.create_directories([WriteEntry(path="/tmp/d/s/t", mode=755)]), lambda _: True))
    if DirectoryListEntry:
        await step(
            "dir-list",
            lambda: a(
                f.list_directory(DirectoryListEntry(path="/tmp/d", depth=2)),
                lambda l: {"/tmp/d/s", "/tmp/d/s/t", "/tmp/d/a.txt"} <= {e.path for e in l},
            ),
        )
    await step(
        "file-search",
        lambda: a(
            f.search(SearchEntry(path="/tmp/d", pattern="*.py")), lambda l: [e.path for e in l] == ["/tmp/d/c.py"]
        ),
    )
    await step(
        "file-replace",
        lambda: a(
            f.replace_contents([ContentReplaceEntry(path="/tmp/d/a.txt", old_content="line2", new_content="LINE")]),
            lambda _: True,
        ),
    )
    await step("file-replace-seen", lambda: a(f.read_file("/tmp/d/a.txt"), lambda s: "LINE" in s))
    if hasattr(f, "replace_contents_detailed"):
        await step(
            "file-replace-count",
            lambda: a(
                f.replace_contents_detailed(
                    [ContentReplaceEntry(path="/tmp/d/a.txt", old_content="l", new_content="L")]
                ),
                lambda r: r[0].replaced_count == 3,
            ),
        )
    await step(
        "file-perm",
        lambda: a(
            f.set_permissions([SetPermissionEntry(path="/tmp/d/a.txt", mode=640, owner="nobody", group="nogroup")]),
            lambda _: True,
        ),
    )
    await step(
        "file-perm-seen",
        lambda: a(
            f.get_file_info(["/tmp/d/a.txt"]),
            lambda i: i["/tmp/d/a.txt"].mode == 640 and i["/tmp/d/a.txt"].owner == "nobody",
        ),
    )
    await step(
        "file-move", lambda: a(f.move_files([MoveEntry(src="/tmp/d/a.txt", dest="/tmp/d/z.txt")]), lambda _: True)
    )
    await step("file-delete", lambda: a(f.delete_files(["/tmp/d/z.txt"]), lambda _: True))
    await step("dir-delete", lambda: a(f.delete_directories(["/tmp/d"]), lambda _: True))

    async def nof():
        try:
            await f.read_file("/nope")
            return False
        except Exception as e:
            return need(
                "404" in str(e) + str(getattr(e, "status_code", ""))
                or "FILE_NOT_FOUND" in str(e) + str(getattr(e, "error", "")),
                repr(e),
            )

    await step("file-missing-404", nof)
    await step("metrics", lambda: a(sb.get_metrics(), lambda x: x.memory_total_in_mib > 0 and x.cpu_count > 0))
    await step("endpoint", lambda: a(sb.get_endpoint(44772), lambda e: e.endpoint))
    await step("renew", lambda: a(sb.renew(td(minutes=7)), lambda r: r.expires_at))
    if hasattr(sb, "isolation"):
        await step("isolation-caps", lambda: a(sb.isolation.capabilities(), lambda x: x.available))
    if hasattr(sb, "get_diagnostic_logs"):
        await step("diag-logs", lambda: a(sb.get_diagnostic_logs("container"), lambda x: x is not None))
    if hasattr(m, "patch_sandbox_metadata"):
        await step(
            "metadata-patch",
            lambda: a(m.patch_sandbox_metadata(sb.id, {"k2": "v2"}), lambda i: i.metadata["k2"] == "v2"),
        )
    await step(
        "list-filter",
        lambda: a(
            m.list_sandbox_infos(SandboxFilter(states=["Running"], metadata={"cl": TAG}, page_size=5)),
            lambda p: [x.id for x in p.sandbox_infos] == [sb.id],
        ),
    )

    async def pr():
        await sb.pause()
        i = await sb.get_info()
        need(i.status.state == "Paused", i.status)
        s2 = await Sandbox.resume(sandbox_id=sb.id, connection_config=C)
        return await a(s2.commands.run("echo back"), lambda e: text(e).strip() == "back")

    await step("pause-resume", pr)
    await step("connect", lambda: a(Sandbox.connect(sb.id, connection_config=C), lambda s: s.id == sb.id))

    async def snap():
        await run("echo keep > /root/keep")
        s = await m.create_snapshot(sb.id, "snap-" + TAG)
        for _ in range(60):
            g = await m.get_snapshot(s.id)
            if g.status.state != "Creating":
                break
            await asyncio.sleep(1)
        need(g.status.state == "Ready", g.status)
        need(
            s.id in [x.id for x in (await m.list_snapshots(SnapshotFilter(sandbox_id=sb.id))).snapshot_infos],
            "not listed",
        )
        try:
            n = await Sandbox.create(snapshot_id=s.id, connection_config=C, resource=R, timeout=td(minutes=3))
            try:
                return await a(n.commands.run("cat /root/keep"), lambda e: text(e).strip() == "keep")
            finally:
                await n.kill()
        finally:
            await m.delete_snapshot(s.id)

    if hasattr(m, "create_snapshot"):
        await step("snapshot-restore", snap, 120)
    await step("kill", lambda: a(sb.kill(), lambda _: True))

    async def gone():
        try:
            await m.get_sandbox_info(sb.id)
            return False
        except Exception as e:
            return need(getattr(e, "status_code", None) == 404, repr(e))

    await step("get-after-kill-404", gone)


asyncio.run(main())
done()
