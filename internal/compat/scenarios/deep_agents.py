"""PyPI deepagents does a code review in a sandbox, through langchain-sandbox-opensandbox. Its model is a script. Then the history
has to show each of its steps."""

import asyncio
import base64
import json
import re
from datetime import timedelta

from deepagents import create_deep_agent
from langchain_opensandbox import OpenSandboxBackend
from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync

from harness import IMAGE, A, done, history, need, step
from scripted import Script, play

ACTOR = {"id": "code-reviewer", "thread_id": "review-001", "run_id": "run-20260720"}
HEADERS = {"X-Agent-Id": ACTOR["id"], "X-Thread-Id": ACTOR["thread_id"], "X-Run-Id": ACTOR["run_id"]}

REPO = "/workspace/repo"
APP = f"{REPO}/src/app.py"
REPORT = "/workspace/report.md"
UPSTREAM = {
    "/srv/upstream/src/app.py": 'import subprocess\n\n\ndef ping(host):\n    return subprocess.run("ping -c1 " + host, shell=True)\n',
    "/srv/upstream/test_app.py": """import unittest
from unittest import mock

from src import app


class TestPing(unittest.TestCase):
    def test_no_shell(self):
        with mock.patch("subprocess.run") as run:
            app.ping("; rm -rf /")
        self.assertFalse(run.call_args.kwargs.get("shell"))
""",
    "/srv/upstream/README.md": "# ping\n",
}
GIT = "git -c user.name=upstream -c user.email=upstream@localhost"
TEST = f"cd {REPO} && python3 -m unittest -v"

# What the model calls, one after the other: name of the step, tool, arguments, a text that its result has.
CALLS = [
    (
        "clone",
        "execute",
        {"command": f"git clone -q /srv/upstream {REPO} && git -C {REPO} log --oneline"},
        "first version",
    ),
    ("ls", "ls", {"path": REPO}, "test_app.py"),
    ("glob", "glob", {"pattern": "**/*.py", "path": REPO}, APP),
    ("grep", "grep", {"pattern": "shell=True", "path": REPO, "output_mode": "content"}, "shell=True"),
    ("read", "read_file", {"file_path": APP}, "subprocess.run"),
    ("test-fails", "execute", {"command": TEST}, "FAILED (failures=1)"),
    (
        "edit",
        "edit_file",
        {"file_path": APP, "old_string": '"ping -c1 " + host, shell=True', "new_string": '["ping", "-c1", host]'},
        APP,
    ),
    ("test-passes", "execute", {"command": TEST}, "OK"),
    ("diff", "execute", {"command": f"git -C {REPO} diff"}, '+    return subprocess.run(["ping", "-c1", host])'),
    (
        "report",
        "write_file",
        {"file_path": REPORT, "content": "# Review\n\nsrc/app.py ran a shell with what a stranger wrote; mended.\n"},
        REPORT,
    ),
    ("read-report", "read_file", {"file_path": REPORT}, "mended"),
]


def create():
    """Makes a sandbox with a repository to be cloned, which is not the agent's doing."""
    config = ConnectionConfigSync(domain=A.hostport, protocol=A.scheme, api_key=A.key, use_server_proxy=A.proxy)
    sandbox = SandboxSync.create(IMAGE, timeout=timedelta(minutes=10), connection_config=config)
    for path, text in UPSTREAM.items():
        sandbox.files.write_file(path, text)
    made = sandbox.commands.run(f"cd /srv/upstream && {GIT} init -q && {GIT} add . && {GIT} commit -qm 'first version'")
    need(made.exit_code == 0, made)
    return sandbox


def review(sandbox_id):
    """Lets the agent work, and returns what each of its calls came to."""
    config = ConnectionConfigSync(
        domain=A.hostport, protocol=A.scheme, api_key=A.key, use_server_proxy=A.proxy, headers=HEADERS
    )
    sandbox = SandboxSync.connect(sandbox_id, connection_config=config)
    script = Script(calls=[call[:3] for call in CALLS], end="The review is done.")
    agent = create_deep_agent(model=script, backend=OpenSandboxBackend(sandbox=sandbox))
    task = f"Clone /srv/upstream, review it for security issues, mend them, and write a report to {REPORT}"
    last, results = play(agent, task)
    sandbox.close()
    need(last == "The review is done.", last)
    return results


def plain(operation):
    """An operation's request with the arguments that Deep Agents hides in base64."""
    text = json.dumps(operation["request"]).replace("\\n", " ")
    for hidden in re.findall(r"[A-Za-z0-9+/]{8,}={0,2}", text):
        try:
            text += " " + base64.b64decode(hidden, validate=True).decode()
        except ValueError:
            continue
    return text


# What a call leaves in the history: type, status, and texts of the request, for each operation.
def expected(tool, arguments, failed):
    status = "failed" if failed else "succeeded"
    match tool:
        case "execute":
            return [("command.execute", status, [json.dumps(arguments["command"])[1:-1]])]
        case "write_file":
            path = arguments["file_path"]
            # Deep Agents makes the folder, the adapter sees that no file is in the way.
            return [
                ("command.execute", status, [path]),
                ("command.execute", "failed", [f"test -e {path}"]),
                ("file.write", status, [path]),
            ]
        case _:
            return [("command.execute", status, [str(arguments.get("file_path") or arguments["path"])])]


async def main():
    sandbox = await step("create", lambda: asyncio.to_thread(create))
    if not sandbox:
        return
    results = await step("review", lambda: asyncio.to_thread(review, sandbox.id), 180) or {}
    for name, _, _, text in CALLS:
        await step(name, lambda name=name, text=text: need(text in results[name].text, results[name].text))
    operations = await step("history", lambda: history(sandbox.id, "--run-id", ACTOR["run_id"])) or []
    rest = list(operations)
    for name, tool, arguments, _ in CALLS:
        await step(f"history-{name}", lambda: shown(rest, expected(tool, arguments, name == "test-fails")))
    await step("history-no-more", lambda: need(not rest, rest))
    await step(
        "history-actor", lambda: need(operations and all(ACTOR.items() <= o["actor"].items() for o in operations))
    )
    await step("history-output", lambda: output(operations))
    await step("kill", lambda: sandbox.kill() is None)
    await step("history-after-kill", lambda: kept(sandbox.id, operations))


def shown(rest, wanted):
    """Takes what a call left from the operations that nothing was found for yet."""
    for kind, status, texts in wanted:
        need(rest, f"no {kind} follows")
        operation = rest.pop(0)
        need(operation["type"] == kind and operation["status"] == status, (kind, status, operation))
        for text in texts:
            need(text in plain(operation), (text, operation["request"]))
    return True


def output(operations):
    """Both test runs stand in the history with what they printed."""
    runs = [o for o in operations if "unittest -v" in plain(o) and o["type"] == "command.execute"]
    need([o["command"]["exit_code"] for o in runs] == [1, 0], runs)
    need("FAILED (failures=1)" in runs[0]["stderr"] and runs[1]["stderr"].endswith("OK\n"), runs)
    return True


def kept(sandbox_id, operations):
    """The history outlives the sandbox. What a command did to files is looked for after its end, so it may be new."""
    after = history(sandbox_id, "--run-id", ACTOR["run_id"])
    need([o["id"] for o in after] == [o["id"] for o in operations], after)
    changed = {f["path"] for o in after for f in o.get("changes", {}).get("changed", [])}
    need(APP in changed, changed)
    return need([{**o, "changes": None} for o in after] == [{**o, "changes": None} for o in operations], after)


asyncio.run(main())
done()
