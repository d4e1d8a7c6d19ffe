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
	// libcImage is of specs that use GNU's dd, whose flags busybox does not have, and nginxImage of specs that want
	// nothing but a shell.
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
	gnu, err := gnuDD(ctx, lab, box)
	if err != nil {
		return err
	}
	load := []string{"load"}
	for ref, args := range map[string][]string{
		busyboxImage: append(slices.Clone(box), "--cmd", "/bin/sh"),
		libcImage:    append(gnu, "--cmd", "/bin/sh"),
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

// gnuDD returns the arguments that put this machine's dd in the place of busybox's, and a shell that runs it: that of
// busybox runs busybox's dd wherever another one is. The nodes' userland has their libraries.
func gnuDD(ctx context.Context, lab cluster.Lab, box []string) ([]string, error) {
	userland, err := lab.Output(ctx, "image", "userland")
	if err != nil {
		return nil, err
	}
	args := append(slices.Clone(box), "--layer", userland)
	for name, program := range map[string]string{"/bin/dd": "dd", "/bin/sh": "dash"} {
		path, err := exec.LookPath(program)
		if err != nil {
			return nil, fmt.Errorf("an image needs %s: %w", program, err)
		}
		at := slices.Index(args, name+"=busybox")
		if at < 1 {
			return nil, fmt.Errorf("busybox has no %s", name)
		}
		args = append(slices.Delete(args, at-1, at+1), "--file", name+"="+path)
	}
	return args, nil
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
