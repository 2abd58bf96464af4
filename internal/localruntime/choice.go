package localruntime

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
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

// choice is what a sandbox begins from.
type choice struct {
	engine   string
	image    *image.Image // nil: this machine's programs, or one that is pulled first
	pull     string
	warnings []string
}

// choose finds what a sandbox gets when its owner asks for an image: what the
// operator gives in its place, what this machine has, or what can be pulled.
func (rt *Runtime) choose(ctx context.Context, asked string) (*choice, error) {
	if asked == ImageHost || asked == ImageHere {
		return &choice{engine: asked}, nil
	}
	if target, ok := rt.opts.ImageAliases[asked]; ok {
		return instead(asked, target), nil
	}
	img, err := rt.images.Find(ctx, asked)
	switch target, ok := rt.opts.ImageAliases[AnyImage]; {
	case err == nil:
		return &choice{engine: ImageHost, image: img}, nil
	case !errors.Is(err, image.ErrAbsent):
		return nil, err
	case ok:
		return instead(asked, target), nil
	}
	return &choice{engine: ImageHost, pull: asked}, nil
}

func instead(asked, target string) *choice {
	return &choice{engine: target, warnings: []string{"the image " + strconv.Quote(clip(asked)) + " is not used: this server gives " +
		strconv.Quote(target) + ", this machine's programs, in its place (--image-alias)"}}
}

// noImage tells of an image that cannot be had.
func noImage(asked string, err error) error {
	return &sandbox.Error{
		Op: "create sandbox", Code: sandbox.CodeImageNotFound, Field: "image",
		Message: "there is no image " + strconv.Quote(clip(asked)) + " on this machine, and it could not be had (" + err.Error() + "); use \"host\", which is this machine's userland, " +
			"or start the server with --image-alias " + sandbox.Join([]string{clip(asked) + "=host"}) + ", which gives that to who asks for this one",
	}
}

// usersOf returns the sandboxes and snapshots that use an image.
func (rt *Runtime) usersOf(imageID string) []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var users []string
	for id, b := range rt.boxes {
		if b.record().ImageID == imageID {
			users = append(users, id)
		}
	}
	for id, s := range rt.snapshots {
		if s.rec.Image == imageID {
			users = append(users, id+" (a snapshot)")
		}
	}
	slices.Sort(users)
	return users
}
