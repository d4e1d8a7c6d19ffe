package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Lab is the lab's command.
type Lab struct{ path string }

// FindLab finds the lab's command: BERTH_LAB, or bin/lab in the repository.
func FindLab() (Lab, error) {
	if path := os.Getenv("BERTH_LAB"); path != "" {
		return Lab{path}, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return Lab{}, err
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "lab")
		if _, err := os.Stat(path); err == nil {
			return Lab{path}, nil
		}
		if dir == filepath.Dir(dir) {
			return Lab{}, fmt.Errorf("bin/lab is not built: make bin/lab, or set BERTH_LAB")
		}
	}
}

// Output runs a lab command and returns its standard output, trimmed.
func (l Lab) Output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("lab %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()+out.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// OnNode runs a command on a node and returns its standard output, trimmed.
func (l Lab) OnNode(ctx context.Context, node string, argv ...string) (string, error) {
	return l.Output(ctx, append([]string{"exec", node, "--"}, argv...)...)
}

// Path of the lab's command.
func (l Lab) Path() string { return l.path }
