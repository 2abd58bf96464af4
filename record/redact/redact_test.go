package redact_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Secrets are put together here, so that this file holds none that a scanner
// of sources would report.
var (
	letters = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcD4eFg7H"
	digits  = "0123456789abcdef0123456789abcdef"
	key     = strings.Repeat(letters+letters[:28]+"\n", 3)
	pem     = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + key + "ab==\n-----END RSA PRIVATE KEY-----"
	jwt     = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + letters
)

func stars(n int) string { return strings.Repeat("*", n) }

// cases has for each detector hits and near misses.
var cases = []struct{ detector, text, want string }{
	{redact.CloudKeyID, "id " + "AKIA" + "IOSFODNN7EXAMPLE.", "id " + stars(20) + "."},
	{redact.CloudKeyID, "key=" + "AIza" + letters[:35] + " x", "key=" + stars(39) + " x"},
	{redact.CloudKeyID, "LTAI" + letters[:20], stars(24)},
	{redact.CloudKeyID, "too long " + "AKIA" + "IOSFODNN7EXAMPLE2", ""},
	{redact.CloudKeyID, "too short AKIAIOSFODNN7EXAMPL", ""},
	{redact.CloudKeyID, "inside XAKIA" + "IOSFODNN7EXAMPLE", ""},
	{redact.GitToken, "https://" + "ghp_" + letters + "@github.com", "https://" + stars(40) + "@github.com"},
	{redact.GitToken, `"\n` + "github_pat_" + letters + `"`, `"\n` + stars(47) + `"`},
	{redact.GitToken, "glpat-" + letters[:20], stars(26)},
	{redact.GitToken, "ghp_" + letters[:35] + "-", ""},
	{redact.GitToken, "glpat-" + letters[:19], ""},
	{redact.PEMKey, "a\n" + pem + "\nb", "a\n" + strings.Replace(strings.ReplaceAll(pem, letters+letters[:28], stars(64)), "ab==", "****", 1) + "\nb"},
	{redact.PEMKey, "-----BEGIN " + "PRIVATE KEY-----\\nMIIabc+/=\\n", "-----BEGIN PRIVATE KEY-----\\*" + stars(9) + "\\*"},
	{redact.PEMKey, "-----BEGIN CERTIFICATE-----\nMIIabc\n-----END CERTIFICATE-----", ""},
	{redact.PEMKey, "if line == \"-----BEGIN PRIVATE KEY-----\" {", ""},
	{redact.JWT, "token: " + jwt + ";", "token: " + stars(len(jwt)) + ";"},
	{redact.JWT, "eyJ" + "hbGciOiJIUzI1NiJ9.abcdefghijklmnop.x", ""},
	{redact.JWT, "eyJ.eyJ.x", ""},
	{redact.BearerHeader, "Authorization: Bearer " + letters[:20] + "\r\n", "Authorization: Bearer " + stars(20) + "\r\n"},
	{redact.BearerHeader, "authorization: bearer " + letters + "==", "authorization: bearer " + stars(38)},
	{redact.BearerHeader, "Bearer " + "0198c3a5-0000-7000-8000-abcdef012345", "Bearer " + stars(36)},
	{redact.BearerHeader, "Bearer " + "AbCdEfGhIjKlMnOpQrStUv", "Bearer " + stars(22)},
	{redact.BearerHeader, "Authorization: Bearer authentication/authorization is required", ""},
	{redact.BearerHeader, "Use bearer authentication-middleware-for-http2-clients here", ""},
	{redact.BearerHeader, "WWW-Authenticate: Bearer https://auth.example.com/realms/v2/0123456789abcdef", ""},
	{redact.BearerHeader, "func bearer tokenAuthenticationMiddleware(next http.Handler)", ""},
	{redact.BearerHeader, "Bearer " + strings.Repeat("word-", 60), ""},
	{redact.BearerHeader, "the bearer of this letter, and Bearer " + letters[:19], ""},
	{redact.URLPassword, "postgres://me:s3cr3t@db:5432/x", "postgres://me:******@db:5432/x"},
	{redact.URLPassword, "redis://:p@ss!w0rd@host", "redis://:*********@host"},
	{redact.URLPassword, "http://host:8080/a@b http://user@host http://[::1]:80/", ""},
	{redact.ModelProviderKey, "OPENAI_API_KEY=" + "sk-" + "proj-" + letters, "OPENAI_API_KEY=" + stars(44)},
	{redact.ModelProviderKey, "x " + "sk-" + "ant-api03-" + letters + "-AA", "x " + stars(52)},
	{redact.ModelProviderKey, "sk-" + "or-v1-" + digits + digits, stars(73)},
	{redact.ModelProviderKey, "class=\"sk-circle-fade-dot animated\" class=\"sk-cube-grid-item-with-long-delay-2-of-9\"", ""},
	{redact.ModelProviderKey, "locale sk-SK-bratislava-region-translations-2024", ""},
	{redact.ModelProviderKey, "pip install sk-learn-contrib-extensions-for-python3-users", ""},
	{redact.ModelProviderKey, "hf_" + letters[:34], stars(37)},
	{redact.ModelProviderKey, "task-" + letters + letters, ""},
	{redact.ModelProviderKey, "sk-" + letters[:31], ""},
	{redact.ChatToken, "xoxb-" + "123456789012-" + letters, stars(54)},
	{redact.ChatToken, "bot123456789:AA" + letters[:33] + "/getMe", "bot123456789" + stars(36) + "/getMe"},
	{redact.ChatToken, "https://" + "hooks.slack.com/services/" + letters, "https://hooks.slack.com/services/" + stars(36)},
	{redact.ChatToken, "?access_token=" + digits + digits, "?access_token=" + stars(64)},
	{redact.ChatToken, "xoxb-short", ""},
	{redact.ChatToken, "12:AA" + letters + letters, ""},
}

func newMasker(t testing.TB, rules *redact.Rules) *redact.Masker {
	t.Helper()
	m, err := redact.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inPieces masks a text that comes in pieces, and checks what is held back.
func inPieces(t testing.TB, m *redact.Masker, pieces ...string) (string, int) {
	t.Helper()
	s := m.Stream()
	var in, out []byte
	count := 0
	for _, piece := range pieces {
		var n int
		in = append(in, piece...)
		out, n = s.Write(out, []byte(piece))
		count += n
		if held := s.Held(); len(held) > redact.MaxHeld || !bytes.Equal(held, in[len(out):]) {
			t.Fatalf("holds back %q after %d of %d bytes came out", held, len(out), len(in))
		}
	}
	out, n := s.Flush(out)
	return string(out), count + n
}

// Each detector finds its secrets, whole and cut by every boundary, and leaves
// what is only like them.
func TestDetectors(t *testing.T) {
	m := newMasker(t, nil)
	hits := map[string]int{}
	for _, tt := range cases {
		want, count := tt.want, 1
		if want == "" {
			want, count = tt.text, 0
		}
		if got, n := m.Text(tt.text); got != want || n != count {
			t.Errorf("%s: %q became %q (%d), want %q", tt.detector, tt.text, got, n, want)
			continue
		}
		hits[tt.detector] += count
		for cut := range len(tt.text) + 1 {
			if got, n := inPieces(t, m, tt.text[:cut], tt.text[cut:]); got != want || n != count {
				t.Errorf("%s cut at %d: got %q (%d), want %q", tt.detector, cut, got, n, want)
			}
		}
		if got, n := inPieces(t, m, strings.Split(tt.text, "")...); got != want || n != count {
			t.Errorf("%s byte by byte: got %q (%d), want %q", tt.detector, got, n, want)
		}
		if got, n := newMasker(t, &redact.Rules{Skip: []string{tt.detector}}).Text(tt.text); n > 0 && got == want {
			t.Errorf("%s is skipped, and yet %q became %q", tt.detector, tt.text, got)
		}
		if got, n := newMasker(t, &redact.Rules{Off: true}).Text(tt.text); got != tt.text || n != 0 {
			t.Errorf("off: got %q", got)
		}
	}
	for _, name := range redact.Detectors() {
		if hits[name] == 0 {
			t.Errorf("%s found nothing", name)
		}
	}
}

func TestPatterns(t *testing.T) {
	m := newMasker(t, &redact.Rules{Patterns: []string{`corp-[0-9a-f]{8}`, `秘密\S+`, `^pin: \d+$`}})
	long := strings.Repeat("x", 5000)
	for text, want := range map[string]string{
		"a corp-0123abcd b\n":            "a ************* b\n",
		"秘密一二 c":                         stars(12) + " c",
		"pin: 12":                        "*******",
		"corp-0123abc\nd":                "corp-0123abc\nd",
		long + "corp-0123abcd" + long:    long + stars(13) + long,
		long + "\n" + "corp-0123abcd\nz": long + "\n" + stars(13) + "\nz",
	} {
		if got, n := m.Text(text); got != want || n != 1 && got != text {
			t.Errorf("%.40q became %.40q (%d), want %.40q", text, got, n, want)
		}
		for cut := 0; cut <= len(text); cut += 1 + len(text)/300 {
			if got, _ := inPieces(t, m, text[:cut], text[cut:]); got != want {
				t.Errorf("%.40q cut at %d became %.40q", text, cut, got)
			}
		}
	}
}

func TestKnown(t *testing.T) {
	slow := redact.Hash("another secret")
	slow.Check = nil
	m := newMasker(t, &redact.Rules{Known: []redact.Secret{redact.Hash("correct horse"), redact.Hash("hunter2hunter2"), slow, redact.Hash("密码是一二三")}})
	text := "x=correct horsey, hunter2hunter2hunter2 and another secret; 密码是一二三!"
	want := "x=*************y, **************hunter2 and **************; ******************!"
	if got, n := m.Text(text); got != want || n != 4 {
		t.Errorf("got %q (%d), want %q", got, n, want)
	}
	for cut := range len(text) + 1 {
		if got, n := inPieces(t, m, text[:cut], text[cut:]); got != want || n != 4 {
			t.Errorf("cut at %d: got %q (%d)", cut, got, n)
		}
	}
}

// What is cut in the middle of a secret is masked as far as it goes.
func TestCut(t *testing.T) {
	m := newMasker(t, nil)
	for text, want := range map[string]string{
		"see ghp_" + letters[:20]: "see " + stars(24),
		"postgres://me:s3cr3t":    "postgres" + stars(12),
		"no secret, some":         "no secret, some",
		"at the end gh":           "at the end gh",
	} {
		s := m.Stream()
		out, first := s.Write(nil, []byte(text))
		out, last := s.Cut(out)
		if count := first + last; string(out) != want || (count == 1) != (want != text) {
			t.Errorf("%q became %q (%d), want %q", text, out, count, want)
		}
	}
}

func TestRules(t *testing.T) {
	for field, rules := range map[string]*redact.Rules{
		"redaction.skip[1]":         {Skip: []string{redact.JWT, "jwtt"}},
		"redaction.patterns[0]":     {Patterns: []string{"("}},
		"redaction.patterns[1]":     {Patterns: []string{"x", strings.Repeat("x", 1025)}},
		"redaction.known[0].sha256": {Known: []redact.Secret{{SHA256: "12", Length: 8}}},
		"redaction.known[0].length": {Known: []redact.Secret{redact.Hash("short")}},
		"redaction.patterns":        {Patterns: make([]string, 65)},
		"redaction.known":           {Known: make([]redact.Secret, 257)},
	} {
		err := rules.Validate()
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeInvalid || e.Field != field {
			t.Errorf("got %v, want it about %s", err, field)
		}
	}
	if newMasker(t, &redact.Rules{Off: true}).Stream() != nil {
		t.Error("off: there is a stream")
	}
}

// FuzzStream compares what comes in pieces with the whole.
func FuzzStream(f *testing.F) {
	for i, tt := range cases {
		f.Add(tt.text+" "+cases[(i+7)%len(cases)].text, uint64(i))
	}
	f.Add(strings.Repeat("-----BEGIN ", 20)+pem+jwt+"://a:b@c", uint64(1))
	f.Add(strings.Repeat("corp-1 correct horse", 50), uint64(1))
	plain := newMasker(f, nil)
	full := newMasker(f, &redact.Rules{Patterns: []string{`corp-\d+`, `b.*d`}, Known: []redact.Secret{redact.Hash("correct horse"), redact.Hash("horsehorse")}})
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		for _, m := range []*redact.Masker{plain, full} {
			whole, n := inPieces(t, m, text)
			var pieces []string
			for rest := text; len(rest) > 0; {
				k := 1 + rng.IntN(min(len(rest), 1+rng.IntN(40)))
				pieces, rest = append(pieces, rest[:k]), rest[k:]
			}
			got, count := inPieces(t, m, pieces...)
			if got != whole || count != n {
				t.Errorf("in pieces %q (%d), whole %q (%d)", got, count, whole, n)
			}
			if len(whole) != len(text) {
				t.Errorf("%d bytes became %d", len(text), len(whole))
			}
			for i := range whole {
				if whole[i] != text[i] && whole[i] != redact.Mask {
					t.Fatalf("byte %d became %q", i, whole[i])
				}
			}
		}
	})
}

func BenchmarkStream(b *testing.B) {
	build := []byte(strings.Repeat("github.com/glassboxhq/glassbox/record\nCompiling bear v0.1.2 (https://example.com/a/b): the quick brown fox skipped 12:30 tasks -- ok\n", 2000))
	for name, rules := range map[string]*redact.Rules{
		"detectors": nil,
		"patterns":  {Patterns: []string{`corp-[0-9a-f]{32}`}},
		"known":     {Known: []redact.Secret{redact.Hash("correct horse battery staple")}},
	} {
		b.Run(name, func(b *testing.B) {
			s := newMasker(b, rules).Stream()
			out := make([]byte, 0, 64<<10)
			b.SetBytes(32 << 10)
			for i := 0; b.Loop(); i++ {
				at := i * (32 << 10) % (len(build) - 32<<10)
				out, _ = s.Write(out[:0], build[at:at+32<<10])
			}
		})
	}
}

// A letter that ends an escape is no part of the word behind it, however the
// pieces are cut.
func TestBehindEscapes(t *testing.T) {
	m, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	secret := "sk-proj-" + strings.Repeat("a1B2", 10)
	for _, before := range []string{"\x1b[31m", "\x1b[01;31m\x1b[K", `"x\n`, `"\t`, "q=a%3D", "key%3a"} {
		text := before + secret + " end"
		for cut := range len(text) {
			stream := m.Stream()
			out, _ := stream.Write(nil, []byte(text[:cut]))
			out, _ = stream.Write(out, []byte(text[cut:]))
			out, _ = stream.Flush(out)
			if want := before + strings.Repeat("*", len(secret)) + " end"; string(out) != want {
				t.Fatalf("cut at %d: got %q, want %q", cut, out, want)
			}
		}
	}
	if out, n := m.Text("task-" + strings.Repeat("a1B2", 10)); n != 0 {
		t.Errorf("in a word: got %q", out)
	}
}

// A pattern hides the texts of who acts, never a word of ours. Secrets that are
// found by what they are hide in no place.
func TestDocument(t *testing.T) {
	all := newMasker(t, &redact.Rules{Patterns: []string{`.+`}})
	token := "ghp_" + letters
	for _, tt := range []struct{ name, doc, want, end string }{
		{
			"a command's end", `{"command_id":"0198","state":"succeeded","history_storage_state":"complete","signal":"KILL","reason":"stopped","exit_code":1}`,
			`{"command_id":"0198","exit_code":1,"history_storage_state":"complete","reason":"*******","signal":"KILL","state":"succeeded"}`,
			`{"command_id":"0198","state":"succeeded","history_storage_state":"complete","signal":"KILL","reason":"stopped","exit_code":1}`,
		},
		{"an error", `{"error":{"code":"file_not_found","message":"no x"}}`, `{"error":{"code":"file_not_found","message":"****"}}`, ""},
		{"names of an environment", `{"command":"id","env":{"NAME":"***"}}`, `{"command":"**","env":{"****":"***"}}`, ""},
		{"metadata", `{"metadata":{"state":"ours?"}}`, `{"metadata":{"*****":"*****"}}`, ""},
		{"a secret as a name", `{"env":{"` + token + `":"***"}}`, `{"env":{"` + stars(40) + `":"***"}}`, ""},
		{"a secret as a field", `{"` + token + `":1}`, `{"` + stars(40) + `":1}`, ""},
		{"a secret as a word", `{"state":"` + token + `"}`, `{"state":"` + stars(40) + `"}`, ""},
	} {
		if tt.end == "" {
			tt.end = tt.want
		}
		if got, _ := all.JSON([]byte(tt.doc)); string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got, _ := all.End([]byte(tt.doc)); string(got) != tt.end {
			t.Errorf("%s, as an end: got %s, want %s", tt.name, got, tt.end)
		}
	}
	if got, n := all.Word("agent"); got != "agent" || n != 0 {
		t.Errorf("a word became %q", got)
	}
	if got, n := all.Word(token); got != stars(40) || n != 1 {
		t.Errorf("a secret in the place of a word became %q (%d)", got, n)
	}
}
