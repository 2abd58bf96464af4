package image_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	base := tarOf(t, file("etc/passwd", "root:x:0:0:r:/root:/bin/sh\nbroken\nwork:x:7:8:w:/home/work:\n"), file("etc/group", "staff:x:50:\n"))
	for text, want := range map[string]string{
		"": "root 0 0", "work": "work 7 8", "7": "work 7 8", "work:staff": "work 7 50", "work:9": "work 7 9", "1234": " 1234 0", "1234:5": " 1234 5",
		"nobody": "!nobody", "work:none": "!none", "-1": "!-1", "4294967296": "!4294967296",
	} {
		h := newHub(t)
		s, _ := open(t, nil)
		img, err := s.Pull(t.Context(), h.push(t, "x:1", imageOf(t, v1.Config{User: text}, base)), nil)
		if missing, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := fmt.Sprint(img.User.Name, " ", img.User.UID, " ", img.User.GID); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
