package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetting(t *testing.T) {
	for _, tt := range []struct {
		name, file, value string
		want              *Setting
	}{
		{"none", "kernel/ostype", "Linux", nil},
		{"no user namespaces", "user/max_user_namespaces", "0", &Setting{"user.max_user_namespaces", "0", "15000"}},
		{"some user namespaces", "user/max_user_namespaces", "96365", nil},
		{"Debian's switch is off", "kernel/unprivileged_userns_clone", "0", &Setting{"kernel.unprivileged_userns_clone", "0", "1"}},
		{"Debian's switch is on", "kernel/unprivileged_userns_clone", "1", nil},
		{"AppArmor", "kernel/apparmor_restrict_unprivileged_userns", "1", &Setting{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"}},
		{"AppArmor lets go", "kernel/apparmor_restrict_unprivileged_userns", "0", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			name := filepath.Join(folder, tt.file)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(tt.value+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(setting(folder), tt.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}
