package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/glassboxhq/glassbox/internal/localruntime/image/imagetest"
)

// giveImages serves an image of this machine's programs to a script, and lays
// it into its folder as docker and OCI tools save one.
func giveImages(t *testing.T, env *testscript.Env) error {
	files := map[string]string{"etc/passwd": "root:x:0:0::/root:/bin/sh\nwork:x:1234:1234::/:/bin/sh\n"}
	at := imagetest.Registry(t, nil)
	env.Setenv("REGISTRY", at)
	config := v1.Config{User: "work", Env: []string{"APP=from the image"}}
	pushed, err := name.ParseReference(imagetest.Push(t, at+"/tools:1", config, imagetest.Layer(t, imagetest.Programs(t, files, "sh", "cat", "id"))))
	if err != nil {
		return err
	}
	img, err := remote.Image(pushed)
	if err != nil {
		return err
	}
	tag, err := name.NewTag("my/tools:2")
	if err != nil {
		return err
	}
	saved, err := os.Create(filepath.Join(env.WorkDir, "saved.tar"))
	if err != nil {
		return err
	}
	defer saved.Close()
	if err := tarball.Write(tag, img, saved); err != nil {
		return err
	}
	folder, err := layout.Write(filepath.Join(env.WorkDir, "oci"), empty.Index)
	if err != nil {
		return err
	}
	return folder.AppendImage(img)
}
