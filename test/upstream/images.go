package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"berth.dev/berth/test/cluster"
)

// registry is where the suite looks for its images: no registry, but a name under which the nodes have them.
const registry = "localhost/e2e"

// The names and versions that Kubernetes 1.37 asks for (test/utils/image).
const (
	busyboxImage = registry + "/busybox:1.37.0-2"
	agnhostImage = registry + "/agnhost:2.66.1"
	pauseImage   = registry + "/pause:3.10.2"
	// These are of specs that want nothing but a shell in them.
	libcImage  = registry + "/glibc-dns-testing:2.1.1"
	nginxImage = registry + "/nginx:1.27.0-2"
)

// loadImages makes the images of the suite's pods, and puts them into the nodes.
func loadImages(ctx context.Context, lab cluster.Lab, dir string) error {
	agnhost, err := lab.Output(ctx, "binary", "agnhost")
	if err != nil {
		return err
	}
	pause, err := lab.Output(ctx, "binary", "pause")
	if err != nil {
		return err
	}
	box, err := busybox(ctx)
	if err != nil {
		return err
	}
	load := []string{"load"}
	for ref, args := range map[string][]string{
		busyboxImage: append(slices.Clone(box), "--cmd", "/bin/sh"),
		libcImage:    append(slices.Clone(box), "--cmd", "/bin/sh"),
		nginxImage:   append(slices.Clone(box), "--cmd", "/bin/sh"),
		agnhostImage: append(slices.Clone(box), "--file", "/agnhost="+agnhost, "--entrypoint", "/agnhost", "--cmd", "pause"),
		pauseImage:   {"--file", "/pause=" + pause, "--entrypoint", "/pause"},
	} {
		name, _, _ := strings.Cut(filepath.Base(ref), ":")
		archive := filepath.Join(dir, name+".tar")
		if _, err := lab.Output(ctx, append([]string{"image", "write", archive, "--ref", ref}, args...)...); err != nil {
			return err
		}
		load = append(load, archive)
	}
	_, err = lab.Output(ctx, load...)
	return err
}

// busybox returns the arguments that put this machine's busybox into an image, with a name for each of its
// programs.
func busybox(ctx context.Context) ([]string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("the images need busybox-static: %w", err)
	}
	list, err := exec.CommandContext(ctx, path, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the programs in busybox: %w", err)
	}
	args := []string{"--file", "/bin/busybox=" + path}
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			args = append(args, "--link", "/bin/"+name+"=busybox")
		}
	}
	return args, nil
}
