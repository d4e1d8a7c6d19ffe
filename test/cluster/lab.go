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
	return output(exec.CommandContext(ctx, l.path, args...))
}

func output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		command := strings.Join(append([]string{filepath.Base(cmd.Path)}, cmd.Args[1:]...), " ")
		return "", fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(errs.String()+out.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// Plugin runs kubectl berth on the cluster, and returns its output.
func (c *Cluster) Plugin(ctx context.Context, args ...string) (string, error) {
	path := filepath.Join(filepath.Dir(c.Lab.path), "kubectl-berth")
	return output(exec.CommandContext(ctx, path, append(args, "--kubeconfig", c.kubeconfig)...))
}

// OnNode runs a command on a node and returns its standard output, trimmed.
func (l Lab) OnNode(ctx context.Context, node string, argv ...string) (string, error) {
	return l.Output(ctx, append([]string{"exec", node, "--"}, argv...)...)
}

// Path returns the path of the lab's command.
func (l Lab) Path() string { return l.path }
