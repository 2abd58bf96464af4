package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
)

func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "image", Short: "Pull, load, list and remove the images of this machine", Aliases: []string{"images"},
		Long: `Image works with OCI images, from which sandboxes of this machine can begin.
Each is unpacked once, and shared by all its sandboxes; what one writes stays
its own. Credentials of registries are found where docker login leaves them.

A sandbox for which an image is missing pulls it by itself.`,
	}
	cmd.AddCommand(a.imagePull(), a.imageLoad(), a.imageList(), a.imageRemove(), a.imagePrune())
	return cmd
}

func (a *app) imagePull() *cobra.Command {
	return &cobra.Command{
		Use: "pull IMAGE...", Short: "Fetch images from their registries, newer ones of the same name too", Args: cobra.MinimumNArgs(1),
		Example: `  glassbox image pull python:3.12
  glassbox image pull registry.example/team/tools@sha256:…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			images, err := a.images(cmd.Context())
			if err != nil {
				return err
			}
			list := []*image.Image{}
			var faults error
			for _, name := range args {
				img, err := images.pull(cmd.Context(), name, false)
				if err != nil {
					faults = errors.Join(faults, err)
					continue
				}
				list = append(list, img)
			}
			return errors.Join(faults, a.print(list, func(t *table) {
				for _, img := range list {
					t.line(img.ID)
				}
			}))
		},
	}
}

func (a *app) imageLoad() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "load FILE", Short: "Take images in from an archive of docker save, or an OCI archive or folder; - is standard input", Args: cobra.ExactArgs(1),
		Example: `  docker save my/app | glassbox image load -
  glassbox image load --name my/app:1 app.oci.tar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			archive, err := a.openArchive(args[0])
			if err != nil {
				return err
			}
			defer archive.Close()
			images, err := a.images(cmd.Context())
			if err != nil {
				return err
			}
			list, err := images.load(cmd.Context(), archive, name)
			if err != nil {
				return err
			}
			return a.print(some(list), func(t *table) {
				for _, img := range list {
					t.line(plain(strings.Join(append(img.Names, img.ID), " ")))
				}
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the image, in place of those in the archive")
	return cmd
}

// openArchive opens a file, standard input, or a folder as if it were a tar.
func (a *app) openArchive(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.in), nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return tarFolder(name), nil
	}
	return os.Open(name)
}

func (a *app) imageList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List images, the latest first", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			images, err := a.images(cmd.Context())
			if err != nil {
				return err
			}
			list, err := images.list(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(some(list), func(t *table) {
				t.row("NAME", "ID", "SIZE", "FILES", "PULLED", "USER")
				for _, img := range list {
					names := img.Names
					if len(names) == 0 {
						names = []string{"-"}
					}
					for _, name := range names {
						t.row(name, shortID(img.ID), amount(img.Size), strconv.Itoa(img.Files), moment(img.PulledAt), userText(img.User))
					}
				}
			})
		},
	}
}

func shortID(id string) string { return short(strings.TrimPrefix(id, "sha256:"), 64)[:12] }

func userText(u image.User) string {
	if u.Name != "" {
		return u.Name
	}
	return strconv.FormatUint(uint64(u.UID), 10)
}

func (a *app) imageRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm IMAGE...", Short: "Remove images by name or id; one that a sandbox uses stays", Aliases: []string{"remove"}, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			images, err := a.images(cmd.Context())
			if err != nil {
				return err
			}
			gone := &image.Removed{}
			var faults error
			for _, name := range args {
				one, err := images.remove(cmd.Context(), name)
				if err != nil {
					faults = errors.Join(faults, err)
					continue
				}
				gone.Names, gone.Images, gone.Bytes = append(gone.Names, one.Names...), append(gone.Images, one.Images...), gone.Bytes+one.Bytes
			}
			if faults != nil && len(gone.Names)+len(gone.Images) == 0 {
				return faults
			}
			return errors.Join(faults, a.printRemoved(gone))
		},
	}
}

func (a *app) imagePrune() *cobra.Command {
	return &cobra.Command{
		Use: "prune", Short: "Remove all images that no sandbox uses, and layers that no image has", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			images, err := a.images(cmd.Context())
			if err != nil {
				return err
			}
			gone, err := images.prune(cmd.Context())
			if err != nil {
				return err
			}
			return a.printRemoved(gone)
		},
	}
}

func (a *app) printRemoved(gone *image.Removed) error {
	return a.print(gone, func(t *table) {
		for _, name := range gone.Names {
			t.row("removed", name)
		}
		for _, id := range gone.Images {
			t.row("removed", id)
		}
		t.line(amount(gone.Bytes) + " free again")
	})
}
