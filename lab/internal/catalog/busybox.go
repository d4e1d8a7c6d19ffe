package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/image"
	"berth.dev/berth/lab/internal/process"
)

// busybox is an image with a shell and the usual small programs.
func busybox(ctx context.Context, _ *artefact.Store) (image.Spec, string, error) {
	path, err := process.Look("busybox")
	if err != nil {
		return image.Spec{}, "", err
	}
	list, err := process.Output(ctx, process.Command{Path: path, Args: []string{"--list"}})
	if err != nil {
		return image.Spec{}, "", fmt.Errorf("listing the programs in busybox: %w", err)
	}
	sum, err := hash(path)
	if err != nil {
		return image.Spec{}, "", fmt.Errorf("reading busybox: %w", err)
	}
	s := image.Spec{Files: []image.File{{Path: "/bin/busybox", Source: path}}, Cmd: []string{"/bin/sh"}}
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			s.Links = append(s.Links, image.Link{Path: "/bin/" + name, Target: "busybox"})
		}
	}
	return s, sum, nil
}

// MissingPackages returns the Debian packages that the named images need and the machine
// lacks; of all images if none is named.
func MissingPackages(refs ...string) []string {
	if len(refs) > 0 && !slices.Contains(refs, Busybox) {
		return nil
	}
	if _, err := process.Look("busybox"); err == nil {
		return nil
	}
	return []string{"busybox-static"}
}

func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
