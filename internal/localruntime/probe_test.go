package localruntime_test

import "testing"

func TestProbe(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	for _, line := range []string{
		"ls -la /dev /dev/shm; python3 -c 'import multiprocessing as m; l = m.Lock(); p = m.Pool(2); print(p.map(abs, [-1, -2]))'",
		"git init -q g && cd g && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --oneline | wc -l",
		"locale; perl -e 'print 1+1'; echo 'int main(){return 0;}' > a.c && gcc a.c -o a && ./a && echo gcc ok; java -version 2>&1 | head -1; node --version",
		"id; su nobody -s /bin/sh -c 'id; touch /tmp/nb && echo wrote'; tar --version | head -1; hostname; cat /etc/hosts; getent hosts localhost; df -h /tmp",
		"curl -sS -o /dev/null -w '%{http_code}\\n' https://pypi.org/simple/six/; openssl version; ls /etc | tr '\\n' ' '; python3 -c 'import ssl; print(len(ssl.create_default_context().get_ca_certs()))'",
		"pip --version; time python3 -m venv /tmp/v; time /tmp/v/bin/pip install -q six; echo done; uptime; cat /proc/cpuinfo | grep -c processor; ulimit -a | head -20",
		"apt list --installed 2>&1 | tail -1; whoami; tty; date; sudo -n true",
	} {
		out := run(t, rt, info.ID, line)
		t.Logf("$ %s\n%d\n%s\n%s", line, out.code, out.stdout, out.stderr)
	}
}
