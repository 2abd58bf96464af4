# PyPI opensandbox-cli (osb) 1.1.1: drives the real command-line program and looks at its output and exit status.
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

from harness import IMAGE, TAG, A, done, need, step

BIN = os.path.join(os.path.dirname(sys.executable), "osb")
tmp = tempfile.mkdtemp()
sid = eid = ses = None


def osb(*a, inp=None, rc=0, js=True, to=60):
    base = [
        BIN,
        "--no-color",
        "--domain",
        A.hostport,
        "--protocol",
        A.scheme,
        "--api-key",
        A.key,
        "--config",
        tmp + "/c.toml",
    ] + (["--use-server-proxy"] if A.proxy else [])
    p = subprocess.run(
        base + list(a) + (["-o", "json"] if js else []), input=inp, text=True, capture_output=True, timeout=to
    )
    if rc is not None and p.returncode != rc:
        raise AssertionError(f"rc {p.returncode} {p.stdout[-200:]} {p.stderr[-200:]}")
    try:
        return json.loads(p.stdout) if js else p.stdout
    except ValueError:
        return p.stdout


async def main():
    global sid
    subprocess.run([BIN, "--config", tmp + "/c.toml", "config", "init"], capture_output=True, timeout=30)

    def create():
        global sid
        r = osb(
            "sandbox",
            "create",
            "-i",
            IMAGE,
            "-t",
            "5m",
            "-m",
            f"cl={TAG}",
            "-e",
            "FOO=bar",
            "--resource",
            "cpu=500m",
            "--resource",
            "memory=512Mi",
        )
        sid = r["id"]
        return bool(sid)

    if not await step("create", create):
        done()
    run = lambda *c, **k: osb("command", "run", sid, "-o", "raw", *k.pop("opt", ()), "--", *c, js=False, **k)
    await step("get", lambda: need(osb("sandbox", "get", sid)["status"]["state"] == "Running"))
    await step("list", lambda: need(sid in json.dumps(osb("sandbox", "list", "-m", f"cl={TAG}", "-s", "Running"))))
    await step("health", lambda: need("healthy" in json.dumps(osb("sandbox", "health", sid)).lower()))
    await step("run", lambda: need(run("sh", "-c", "echo hi $FOO").strip() == "hi bar"))
    await step("run-exit-code", lambda: need(run("sh", "-c", "exit 3", rc=1) is not None))
    await step("run-timeout", lambda: run("sleep", "20", opt=("-t", "2s"), rc=None, to=15) is not None)
    await step(
        "run-argv",
        lambda: need(
            osb("command", "run", sid, "--argv", "-o", "raw", "--", "printf", "%s", "$FOO", js=False).strip() == "$FOO"
        ),
    )

    def bg():
        r = osb("command", "run", sid, "-d", "-o", "json", "--", "sh", "-c", "echo go; sleep 1; echo end", js=False)
        e = json.loads(r)
        i = e.get("execution_id") or e.get("id")
        time.sleep(2.5)
        s = osb("command", "status", sid, i)
        need(s["running"] is False and s["exit_code"] == 0, s)
        return need("end" in json.dumps(osb("command", "logs", sid, i)))

    await step("background-status-logs", bg)

    def intr():
        e = json.loads(osb("command", "run", sid, "-d", "-o", "json", "--", "sleep", "100", js=False))
        i = e.get("execution_id") or e.get("id")
        osb("command", "interrupt", sid, i, js=False)
        time.sleep(1.5)
        return need(osb("command", "status", sid, i)["running"] is False)

    await step("interrupt", intr)

    def sess():
        r = osb("command", "session", "create", sid)
        s = r.get("session_id") or r.get("id")
        osb("command", "session", "run", sid, s, "--", "export", "Q=7", js=False)
        o = osb("command", "session", "run", sid, s, "--", "printenv", "Q", js=False)
        osb("command", "session", "delete", sid, s, js=False)
        return need("7" in o, o)

    await step("session", sess)
    await step(
        "file-write",
        lambda: osb("file", "write", sid, "/tmp/k/a.txt", "-c", "one two", "--mode", "0644", js=False) is not None,
    )
    await step("file-cat", lambda: need(osb("file", "cat", sid, "/tmp/k/a.txt", js=False).strip() == "one two"))
    await step("file-info", lambda: need('"size": 7' in json.dumps(osb("file", "info", sid, "/tmp/k/a.txt"))))

    def updown():
        b = os.urandom(300000)
        open(tmp + "/u", "wb").write(b)
        osb("file", "upload", sid, tmp + "/u", "/tmp/k/u.bin", js=False)
        osb("file", "download", sid, "/tmp/k/u.bin", tmp + "/d", js=False)
        return need(open(tmp + "/d", "rb").read() == b)

    await step("file-up-down", updown)
    await step(
        "file-replace",
        lambda: need(
            osb("file", "replace", sid, "/tmp/k/a.txt", "--old", "two", "--new", "2", js=False) is not None
            and "one 2" in osb("file", "cat", sid, "/tmp/k/a.txt", js=False)
        ),
    )
    await step(
        "file-search", lambda: need("/tmp/k/a.txt" in json.dumps(osb("file", "search", sid, "/tmp/k", "-p", "*.txt")))
    )
    await step("file-chmod", lambda: osb("file", "chmod", sid, "/tmp/k/a.txt", "--mode", "0600", js=False) is not None)
    await step(
        "file-mkdir-mv-rm-rmdir",
        lambda: (
            [
                osb("file", *c, js=False)
                for c in (
                    ("mkdir", sid, "/tmp/k/dd"),
                    ("mv", sid, "/tmp/k/a.txt", "/tmp/k/b.txt"),
                    ("rm", sid, "/tmp/k/b.txt"),
                    ("rmdir", sid, "/tmp/k"),
                )
            ]
            != None
        ),
    )
    await step("metrics", lambda: need("memory" in json.dumps(osb("sandbox", "metrics", sid))))
    await step("endpoint", lambda: need("endpoint" in json.dumps(osb("sandbox", "endpoint", sid, "-p", "44772"))))
    await step("renew", lambda: osb("sandbox", "renew", sid, "-t", "8m") is not None)
    await step(
        "diagnostics-logs", lambda: need("content" in json.dumps(osb("diagnostics", "logs", sid, "-s", "container")))
    )
    await step(
        "diagnostics-events", lambda: need("content" in json.dumps(osb("diagnostics", "events", sid, "-s", "runtime")))
    )
    await step("devops-summary", lambda: need("INSPECT" in osb("devops", "summary", sid, js=False).upper()))
    await step(
        "pause-resume",
        lambda: need(
            osb("sandbox", "pause", sid) is not None
            and osb("sandbox", "get", sid)["status"]["state"] == "Paused"
            and osb("sandbox", "resume", sid) is not None
            and run("echo", "up").strip() == "up"
        ),
    )

    def snap():
        r = osb("snapshot", "create", sid, "--name", TAG)
        i = r["id"]
        for _ in range(40):
            if osb("snapshot", "get", i)["status"]["state"] != "Creating":
                break
            time.sleep(1)
        ok = osb("snapshot", "get", i)["status"]["state"] == "Ready" and i in json.dumps(
            osb("snapshot", "list", "--sandbox-id", sid)
        )
        osb("snapshot", "delete", i, js=False)
        return need(ok)

    await step("snapshot", snap, 120)
    await step("kill", lambda: osb("sandbox", "kill", sid) is not None)
    await step("get-after-kill", lambda: osb("sandbox", "get", sid, rc=1, js=False) is not None)


asyncio.run(main())
done()
