// npm @alibaba-group/opensandbox 0.1.11: main surface. usage: node sdk.mjs --url URL [--proxy]
import { Sandbox, SandboxManager, ConnectionConfig } from "@alibaba-group/opensandbox";
const arg = (n, d) => {
  const i = process.argv.indexOf(n);
  return i < 0 ? d : process.argv[i + 1];
};
const url = arg("--url", process.env.CL_URL ?? "http://127.0.0.1:8080").replace(/\/$/, ""),
  key = process.env.CL_KEY ?? "e2e-test",
  image = process.env.CL_IMAGE ?? "python:3.12",
  TAG = "cl-js-" + process.pid;
let pass = 0,
  fail = 0;
const need = (c, m = "not as expected") => {
  if (!c) throw new Error(typeof m === "string" ? m : JSON.stringify(m));
  return true;
};
const lim = (p, ms) =>
  Promise.race([p, new Promise((_, j) => setTimeout(() => j(new Error("time limit")), ms).unref())]);
async function step(n, f, ms = 90000) {
  try {
    const r = await lim(Promise.resolve().then(f), ms);
    pass++;
    console.log("ok " + n);
    return r ?? true;
  } catch (e) {
    fail++;
    console.log(
      `FAIL ${n}: ${String(e?.error?.code ?? "")} ${String(e?.message ?? e)
        .replace(/\s+/g, " ")
        .slice(0, 240)}`,
    );
  }
}
const out = (e) =>
    e.logs.stdout
      .map((m) => m.text)
      .join("\n")
      .trim(),
  sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const connectionConfig = new ConnectionConfig({
  domain: url.split("://")[1],
  protocol: url.split("://")[0],
  apiKey: key,
  useServerProxy: process.argv.includes("--proxy"),
  requestTimeoutSeconds: 60,
});
const sb = await step("create", () =>
  Sandbox.create({
    connectionConfig,
    image,
    timeoutSeconds: 300,
    env: { FOO: "bar" },
    metadata: { cl: TAG },
    resource: { cpu: "500m", memory: "512Mi" },
  }),
);
if (sb) {
  const c = sb.commands,
    f = sb.files,
    m = SandboxManager.create({ connectionConfig });
  await step("health", async () => need(await sb.isHealthy()));
  await step("info", async () => need((await sb.getInfo()).status.state === "Running"));
  await step("run", async () => {
    const e = await c.run("echo hi $FOO");
    need(out(e) === "hi bar" && e.exitCode === 0, e);
  });
  await step("run-exit-stderr", async () => {
    const e = await c.run("echo oops >&2; exit 7");
    need(e.exitCode === 7 && e.logs.stderr[0].text.trim() === "oops", e);
  });
  await step("run-stream", async () => {
    const t = [];
    for await (const e of c.runStream("for i in 1 2 3; do echo $i; sleep 0.4; done"))
      if (e.type === "stdout") t.push(Date.now());
    need(t.length === 3 && t[2] - t[0] > 500, t);
  });
  await step("run-timeout", async () => {
    const t = Date.now();
    const e = await c.run("sleep 30", { timeoutSeconds: 2 });
    need(Date.now() - t < 9000 && e.exitCode !== 0, e);
  });
  await step("run-interrupt", async () => {
    let p;
    const id = await new Promise((r) => {
      p = c.run("sleep 60", {}, { onInit: (i) => r(i.id) });
    });
    await sleep(300);
    await c.interrupt(id);
    const e = await lim(p, 15000);
    need(e.error, e);
  });
  await step("run-background", async () => {
    const e = await c.run("echo go; sleep 1; echo end", { background: true });
    await sleep(2200);
    const s = await c.getCommandStatus(e.id);
    const l = await c.getBackgroundCommandLogs(e.id, 0);
    need(s.running === false && s.exitCode === 0 && l.content.includes("end"), [s, l]);
  });
  await step("session", async () => {
    const s = await c.createSession({ workingDirectory: "/tmp" });
    const id = s.sessionId ?? s;
    await c.runInSession(id, "export Q=5; cd /usr");
    const e = await c.runInSession(id, "echo $Q; pwd");
    await c.deleteSession(id);
    need(out(e).includes("5") && out(e).includes("/usr"), e);
  });
  await step("file-write-read", async () => {
    await f.writeFiles([{ path: "/tmp/d/a.txt", data: "héllo\nl2\nl3\n", mode: 644 }]);
    need((await f.readFile("/tmp/d/a.txt")) === "héllo\nl2\nl3\n");
  });
  await step("file-bytes-2MiB", async () => {
    const d = new Uint8Array(2097152).map((_, i) => i & 255);
    await f.writeFiles([{ path: "/tmp/d/b.bin", data: d }]);
    const r = await f.readBytes("/tmp/d/b.bin");
    need(Buffer.compare(Buffer.from(r), Buffer.from(d)) === 0);
  });
  await step("file-range", async () =>
    need(Buffer.from(await f.readBytes("/tmp/d/a.txt", { range: "bytes=7-8" })).toString() === "l2"),
  );
  await step("file-info", async () => need((await f.getFileInfo(["/tmp/d/b.bin"]))["/tmp/d/b.bin"].size === 2097152));
  await step("dir-list", async () => {
    await f.createDirectories([{ path: "/tmp/d/s", mode: 755 }]);
    need((await f.listDirectory({ path: "/tmp/d" })).some((e) => e.path === "/tmp/d/s"));
  });
  await step("search", async () => need((await f.search({ path: "/tmp/d", pattern: "*.txt" })).length === 1));
  await step("replace-count", async () => {
    const r = await f.replaceContentsDetailed([{ path: "/tmp/d/a.txt", oldContent: "l2", newContent: "L2" }]);
    need(r[0].replacedCount === 1, r);
  });
  await step("perm-move-delete", async () => {
    await f.setPermissions([{ path: "/tmp/d/a.txt", mode: 600 }]);
    await f.moveFiles([{ src: "/tmp/d/a.txt", dest: "/tmp/d/z.txt" }]);
    await f.deleteFiles(["/tmp/d/z.txt"]);
    await f.deleteDirectories(["/tmp/d"]);
  });
  await step("metrics", async () => need((await sb.getMetrics()).memoryTotalMiB > 0));
  await step("endpoint", async () => need((await sb.getEndpoint(44772)).endpoint));
  await step("renew", async () => need((await sb.renew(420)).expiresAt));
  await step("metadata-patch", async () => need((await sb.patchMetadata({ k2: "v2" })).metadata.k2 === "v2"));
  await step("list-filter", async () => {
    const l = await m.listSandboxInfos({ metadata: { cl: TAG }, states: ["Running"] });
    need(l.items.length === 1 && l.items[0].id === sb.id, l);
  });
  await step("pause-resume", async () => {
    await sb.pause();
    need((await sb.getInfo()).status.state === "Paused");
    const s2 = await sb.resume();
    need(out(await (s2 ?? sb).commands.run("echo back")) === "back");
  });
  await step("snapshot", async () => {
    let s = await m.createSnapshot(sb.id, { name: TAG });
    for (let i = 0; i < 40 && s.status.state === "Creating"; i++) {
      await sleep(1000);
      s = await m.getSnapshot(s.id);
    }
    try {
      need(s.status.state === "Ready", s);
      need((await m.listSnapshots({ sandboxId: sb.id })).items.some((x) => x.id === s.id));
    } finally {
      await m.deleteSnapshot(s.id);
    }
  });
  await step("kill", async () => {
    await sb.kill();
  });
  await step("get-after-kill-404", async () => {
    try {
      await m.getSandboxInfo(sb.id);
    } catch (e) {
      need(e.statusCode === 404, e.message);
      return;
    }
    throw new Error("still there");
  });
}
console.log(`${pass} passed, ${fail} failed`);
process.exit(0);
