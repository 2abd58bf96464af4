package vault_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/glassboxhq/glassbox/internal/vault"
)

func open(t *testing.T, file string) *vault.Vault {
	t.Helper()
	v, err := vault.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sealed(t *testing.T, v *vault.Vault, secret vault.Secret, place string) []byte {
	t.Helper()
	b, err := v.Seal(secret, place)
	if err != nil {
		t.Fatal(err)
	}
	if len(secret) > 5 && bytes.Contains(b, []byte(secret)) {
		t.Fatal("the secret stands in what is sealed")
	}
	return b
}

func TestSeal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "deep", "master_key")
	v := open(t, file)
	for _, secret := range []vault.Secret{"", "k", "钥匙", vault.Secret(strings.Repeat("x", 1<<16))} {
		b := sealed(t, v, secret, "a/1")
		if again := sealed(t, v, secret, "a/1"); bytes.Equal(b, again) {
			t.Error("the same secret is sealed the same way twice")
		}
		got, err := open(t, file).Unseal(b, "a/1") // by another process
		if err != nil || got != secret {
			t.Errorf("%d bytes came back, %v", len(got), err)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info.Mode(), err)
	}
}

// What was moved, changed, cut or sealed elsewhere does not open.
func TestDoesNotOpen(t *testing.T) {
	t.Parallel()
	v := open(t, filepath.Join(t.TempDir(), "key"))
	b := sealed(t, v, "secret", "a/1")
	fails := func(name string, v *vault.Vault, b []byte, place string) {
		t.Helper()
		if got, err := v.Unseal(b, place); !errors.Is(err, vault.ErrSealed) || got != "" {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	fails("another row", v, b, "a/2")
	fails("another key", open(t, filepath.Join(t.TempDir(), "key")), b, "a/1")
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1
		fails(fmt.Sprintf("byte %d changed", i), v, changed, "a/1")
		fails(fmt.Sprintf("cut to %d", i), v, b[:i], "a/1")
	}
	fails("longer", v, append(bytes.Clone(b), 0), "a/1")
}

func TestRotate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	v := open(t, file)
	old := sealed(t, v, "secret", "a")
	before, _ := os.ReadFile(file)
	if _, changed, err := v.Reseal(old, "a"); changed || err != nil {
		t.Errorf("resealed without a new key: %v %v", changed, err)
	}
	if err := v.Rotate(); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, file).Unseal(old, "a"); got != "secret" || err != nil {
		t.Errorf("after the rotation the old one does not open: %v", err)
	}
	again, changed, err := v.Reseal(old, "a")
	if !changed || err != nil {
		t.Fatal(changed, err)
	}
	if err := v.Forget(); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, file)
	if got, err := fresh.Unseal(again, "a"); got != "secret" || err != nil {
		t.Errorf("resealed: %v", err)
	}
	if _, err := fresh.Unseal(old, "a"); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("the old key is still here: %v", err)
	}
	if after, _ := os.ReadFile(file); bytes.Contains(after, bytes.TrimSpace(before)) {
		t.Error("the old key is still in the file")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "key")
	open(t, good)
	text, _ := os.ReadFile(good)
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"OK", string(text), 0o400, ""},
		{"blank lines", "\n" + string(text) + "\n", 0o600, ""},
		{"readable by others", string(text), 0o640, "chmod 600"},
		{"empty", "", 0o600, "holds no key"},
		{"zeros", strings.Repeat("0", 64), 0o600, "no key"},
		{"short key", "glassbox-key-1:AAAA", 0o600, "no key"},
		{"huge", strings.Repeat(string(text), 2000), 0o600, "no key file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(tt.text), tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := vault.Open(file)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "AAAA") {
				t.Errorf("the error tells the key: %v", err)
			}
		})
	}
}

// Two servers that begin at once have one key.
func TestTogether(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	vaults := make([]*vault.Vault, 8)
	var all sync.WaitGroup
	for i := range vaults {
		all.Go(func() { vaults[i], _ = vault.Open(file) })
	}
	all.Wait()
	b := sealed(t, vaults[0], "secret", "a")
	for _, v := range vaults {
		if got, err := v.Unseal(b, "a"); got != "secret" || err != nil {
			t.Error(err)
		}
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	s := struct{ Key vault.Secret }{"hunter22"}
	text, _ := json.Marshal(s)
	for _, got := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %s %q", s, s, s.Key, s.Key), string(text)} {
		if strings.Contains(got, "hunter22") {
			t.Error(got)
		}
	}
}

// What a database holds may be anything: it opens, or it does not.
func FuzzUnseal(f *testing.F) {
	v, err := vault.Open(filepath.Join(f.TempDir(), "key"))
	if err != nil {
		f.Fatal(err)
	}
	good, err := v.Seal("secret", "a")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "a")
	f.Add(good, "b")
	f.Add([]byte{1}, "a")
	f.Fuzz(func(t *testing.T, sealed []byte, place string) {
		secret, err := v.Unseal(sealed, place)
		if (err == nil) != (place == "a" && bytes.Equal(sealed, good)) {
			t.Errorf("%q opens: %v", place, err)
		}
		if err != nil && secret != "" {
			t.Error("a secret beside an error")
		}
	})
}
