package userland

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// shared are the parts of the host's /etc that programs under /usr cannot do
// without. Of these, only what every user of the host may read is copied.
var shared = []string{
	"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts",
	"gai.conf", "host.conf", "inputrc", "java-*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"locale.alias", "locale.conf", "localtime", "magic", "magic.mime", "mime.types", "mke2fs.conf",
	"os-release", "perl", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "protocols", "python3",
	"python3.*", "rpc", "services", "shells", "skel", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
	"terminfo", "timezone",
}

// maxCopy bounds a file of /etc that is copied.
const maxCopy = 16 << 20

// etc makes the sandbox's /etc.
func (l *layout) etc(hostname string) error {
	for _, pattern := range shared {
		names, err := filepath.Glob("/etc/" + pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := mkdir(filepath.Dir(l.path(name)), 0o755); err != nil {
				return err
			}
			if err := copyTree(name, l.path(name)); err != nil {
				return err
			}
		}
	}
	texts := Network(hostname)
	maps.Copy(texts, generated)
	for name, content := range texts {
		if err := writeFile(l.path("etc/"+name), content); err != nil {
			return err
		}
	}
	return os.Symlink("/proc/mounts", l.path("etc/mtab"))
}

// generated are the files of /etc that are written anew.
var generated = map[string]string{
	"passwd": "root:x:0:0:root:/root:/bin/bash\n" +
		"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n" +
		"bin:x:2:2:bin:/bin:/usr/sbin/nologin\n" +
		"sys:x:3:3:sys:/dev:/usr/sbin/nologin\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group": "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nmail:x:8:\n" +
		"kmem:x:15:\nsudo:x:27:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\nusers:x:100:\nnogroup:x:65534:\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n" +
		"protocols: files\nservices: files\n",
	"profile": "[ -r \"$HOME/.profile\" ] && [ \"$HOME\" != /root ] && . \"$HOME/.profile\"\n" +
		"[ -n \"$BASH_VERSION\" ] && [ -r /etc/bash.bashrc ] && . /etc/bash.bashrc\ntrue\n",
	"fstab": "",
}

// Network returns the files of /etc, by name, that say where a sandbox is.
func Network(hostname string) map[string]string {
	return map[string]string{
		"hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"127.0.1.1\t" + hostname + "\n",
		"hostname": hostname + "\n",
		// Names are resolved by the proxy on the other side; without this line
		// a program that tries by itself would wait for an answer.
		"resolv.conf": "# No network but the HTTP proxy of http_proxy and https_proxy.\noptions timeout:1 attempts:1\n",
	}
}

// copyTree copies a file, a link or a folder, and leaves out what others may
// not read. A link that leads out of the shared parts dangles inside, which is
// what it should do, except for a link in /etc itself that stands for a file.
func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return skipAbsent(err)
	}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return skipAbsent(err)
		}
		if dangles(from, target) {
			return copyFile(from, to)
		}
		return os.Symlink(target, to)
	case info.IsDir():
		if info.Mode().Perm()&0o005 != 0o005 {
			return nil
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return skipAbsent(err)
		}
		if err := mkdir(to, 0o755); err != nil {
			return err
		}
		for _, entry := range entries {
			if err := copyTree(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
				return err
			}
		}
		return nil
	default:
		return copyFile(from, to)
	}
}

// dangles reports whether a link leads to a place that the sandbox lacks, as
// the certificates in /usr/local/share and a localtime in /var do.
func dangles(from, target string) bool {
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(from), target)
	}
	target = filepath.Clean(target)
	if strings.HasPrefix(target, "/usr/local/") {
		return true
	}
	return !strings.HasPrefix(target, "/usr/") && !strings.HasPrefix(target, "/etc/")
}

// copyFile copies what from stands for, if it is a plain file that everybody
// may read.
func copyFile(from, to string) error {
	info, err := os.Stat(from) // not opened yet: it may be a pipe
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 || info.Size() > maxCopy {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return skipAbsent(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, info.Size())
	if errors.Is(err, io.EOF) {
		err = nil // it became shorter meanwhile
	}
	return errors.Join(err, out.Chmod(info.Mode().Perm()&0o755|0o444), out.Close())
}

// writeFile writes a file that everybody may read, whatever the umask.
func writeFile(name, content string) error {
	// A generated file takes the place of a copied link, never of its target.
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Chmod(name, 0o644)
}

func skipAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
