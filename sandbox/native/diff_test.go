package native_test

import (
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// A key is masked in a diff that shows a part of it only, or that takes it away.
func TestDiffOfSecret(t *testing.T) {
	mask, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := native.New(&native.Options{Workdir: t.TempDir(), Mask: func(text string) string { masked, _ := mask.Text(text); return masked }})
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("Ab3dEf6hIj9lMn2pQr5t\n", 8)
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + body + "-----END RSA PRIVATE KEY-----\n"
	write := func(text string) *sandbox.FileInfo {
		info, err := s.Write(t.Context(), "f", strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	write("title = 1\n" + key + "tail = 1\n")
	for _, next := range []string{"title = 1\n" + key + "tail = 2\n", "title = 1\ntail = 2\n", "title = 2\n" + key} {
		if diff := write(next).Diff; diff == "" || strings.Contains(diff, "Ab3dEf6h") {
			t.Errorf("the diff shows the key, or nothing:\n%s", diff)
		}
	}
}
