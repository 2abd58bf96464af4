package localruntime_test

import (
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
)

// makeOdd makes what an agent can do to names, depths, numbers and rights. It
// is for a sandbox only.
const makeOdd = `import os
os.chdir("/srv")
for name in [b"\xff\xfe", b"line\nend", b"tab\tcr\r", b"-rf *", b"x" * 255, "研究".encode() * 42, b" ", b"\x01\x7f", b"a=b", b"...", b"path\\with"]:
    with open(name, "wb") as f: f.write(name)
os.mkdir("many")
for i in range(2000): open(f"many/{i}", "w").close()
for i in range(100):
    os.mkdir("d"); os.chdir("d")
with open("deepest", "w") as f: f.write("deep")
os.chdir("/srv")
os.symlink("x" * 4000, "long"); os.symlink("../../../etc/passwd", "out"); os.symlink("/proc/1/root", "proc")
for name in "own", "setuid", "none": open(name, "w").close()
os.chown("own", 2**32 - 2, 2**31)
os.chmod("setuid", 0o6755); os.chmod("none", 0)
for i in range(40): os.setxattr("none", f"user.{i}", b"v" * 300)
os.utime("none", (-1000, -1000)); os.utime("own", (2**33, 2**33))
os.remove("/usr/bin/tac")
os.rename("/etc/hostname", "/srv/moved")
os.mkdir("/etc/hostname")
`

// lookOdd shows it, with names as hexadecimal digits.
const lookOdd = `import hashlib, os, stat
for folder, dirs, files in os.walk(b"/srv"):
    for name in sorted(dirs + files):
        path = os.path.join(folder, name)
        s = os.lstat(path)
        rest = os.readlink(path)[:40] if stat.S_ISLNK(s.st_mode) else b""
        if stat.S_ISREG(s.st_mode):
            with open(path, "rb") as f: rest = hashlib.sha256(f.read()).digest()[:4]
        if not folder.endswith(b"many"): print(path[-60:].hex(), oct(s.st_mode), s.st_uid, s.st_gid, s.st_size if files else 0, rest.hex())
print(len(os.listdir("/srv/many")), sum(len(os.getxattr("/srv/none", n)) for n in os.listxattr("/srv/none")))
print(os.stat("/srv/own").st_mtime, os.stat("/srv/none").st_mtime, os.path.exists("/usr/bin/tac"), os.path.isdir("/etc/hostname"))
`

// TestSnapshotOfOddFiles keeps files as odd as they can be made.
func TestSnapshotOfOddFiles(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	python := func(box, program string) outcome {
		t.Helper()
		out := run(t, rt, box, "python3 - <<'PROGRAM'\n"+program+"PROGRAM\n")
		if out.code != 0 {
			t.Fatalf("%+v", out)
		}
		return out
	}
	python(box, makeOdd)
	want := python(box, lookOdd)
	s := take(t, rt, box)
	if got := python(create(t, rt, &sandbox.Spec{Snapshot: s.ID}).ID, lookOdd); got != want {
		t.Errorf("in the new one %+v\nwant %+v", got, want)
	}
}
