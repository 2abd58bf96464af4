package localruntime

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// AnyImage stands, in Options.ImageAliases, for every image that this machine
// does not have.
const AnyImage = "*"

// checkAliases tells what is wrong with the aliases of images.
func checkAliases(aliases map[string]string) error {
	for _, asked := range slices.Sorted(maps.Keys(aliases)) {
		target := aliases[asked]
		switch {
		case strings.TrimSpace(asked) == "" || asked == ImageHost || asked == ImageHere:
			return sandbox.Invalid("image_alias", "must give a name to an image of others, as in python:3.12=host, not to "+strconv.Quote(clip(asked)))
		case target == ImageHere:
			return sandbox.Invalid("image_alias", "must not lead to here: no client may lose its isolation without a word of its own")
		case target != ImageHost:
			return sandbox.Invalid("image_alias", "must lead to host, not to "+strconv.Quote(clip(target)))
		}
	}
	return nil
}

// choose returns the image that a sandbox gets when its owner asks for one,
// and a warning when it is another.
func (rt *Runtime) choose(asked string) (image string, warnings []string, err error) {
	if asked == ImageHost || asked == ImageHere {
		return asked, nil, nil
	}
	target, ok := rt.opts.ImageAliases[asked]
	if !ok {
		target, ok = rt.opts.ImageAliases[AnyImage]
	}
	if !ok {
		return "", nil, noImage(asked)
	}
	return target, []string{"the image " + strconv.Quote(clip(asked)) + " is not used: this server gives " +
		strconv.Quote(target) + ", this machine's programs, in its place (--image-alias)"}, nil
}

func noImage(asked string) error {
	return &sandbox.Error{
		Op: "create sandbox", Code: sandbox.CodeImageNotFound, Field: "image",
		Message: "there is no image " + strconv.Quote(clip(asked)) + " in the local runtime; use \"host\", which is this machine's userland, " +
			"or start the server with --image-alias " + sandbox.Join([]string{clip(asked) + "=host"}) + ", which gives that to who asks for this one",
	}
}
