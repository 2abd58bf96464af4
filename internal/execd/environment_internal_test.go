package execd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

func TestReadEnv(t *testing.T) {
	got := map[string]string{}
	readEnv("# A=0\nA=plain\nexport B='it is $A'\nC=\"q\\\"\\n\\\\t\"\n\nD=\nE='open\n=F\nA=later\r\n", got)
	want := map[string]string{"A": "later", "B": "it is $A", "C": "q\"\n\\t", "D": "", "E": "'open"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// Whatever stands in the file, every command can be given what is read of it.
func FuzzReadEnv(f *testing.F) {
	f.Add("A='b'\nC=\"\\\"")
	f.Add("A=\x00\n=\nB=\xff")
	f.Fuzz(func(t *testing.T, text string) {
		env := map[string]string{}
		readEnv(text, env)
		for key, value := range env {
			if err := sandbox.ValidateEnv(map[string]string{key: value}); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
