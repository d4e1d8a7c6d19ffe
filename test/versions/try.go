package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// record is what was seen of Berth on a version of Kubernetes.
type record struct {
	// Kubernetes is the release, such as v1.36.4.
	Kubernetes string `json:"kubernetes"`
	// Passed are the numbers of the tests that passed; none failed.
	Passed counts `json:"passed"`
}

type counts struct {
	// Rules of the definitions and the admission policies, controllers and agents, on an API server.
	Rules int `json:"rules"`
	// Scheduler are those of berth-scheduler of that version; 0 if there is none.
	Scheduler int `json:"scheduler"`
	// Volumes are those of a cluster of that version.
	Volumes int `json:"volumes"`
}

// values are the chart's values that depend on the version.
var values = []string{"scheduler.enabled", "extender.enabled", "extender.marker.enabled"}

// try runs the tests on a minor version.
func try(ctx context.Context, minor string) (r record, err error) {
	lab := "BERTH_LAB_KUBERNETES=" + minor
	assets, err := output(ctx, lab, "bin/lab", "assets")
	if err != nil {
		return r, err
	}
	said, err := output(ctx, lab, filepath.Join(assets, "kube-apiserver"), "--version")
	if err != nil {
		return r, err
	}
	r.Kubernetes = strings.TrimPrefix(said, "Kubernetes ")
	if minorOf(r.Kubernetes) != minor {
		return r, fmt.Errorf("the lab builds Kubernetes %s for %s", r.Kubernetes, minor)
	}
	api := []string{"KUBEBUILDER_ASSETS=" + assets}
	if r.Passed.Rules, err = passed(ctx, api, "go", "test", "-json", "-timeout", "30m",
		"./internal/apitest/...", "./internal/controller/...", "./internal/usecase/...", "./internal/agent"); err != nil {
		return r, err
	}
	if r.Passed.Scheduler, err = schedulers(ctx, minor, api); err != nil {
		return r, err
	}
	r.Passed.Volumes, err = passed(ctx, []string{lab}, "hack/native", "go", "test", "-json", "-tags", "e2e,thorough", "-count=1", "-timeout", "15m", "-run", "Subvolume", "./test/e2e")
	return r, err
}

// schedulers runs the tests of the berth-scheduler for a minor version, if there is one.
func schedulers(ctx context.Context, minor string, env []string) (int, error) {
	module, older := "go.mod", []string{}
	if minor != newest { // which alone has groups of pods
		module = "go-" + minor + ".mod"
		older = []string{"-modfile=" + module, "-tags", "older"}
	}
	switch _, err := os.Stat(filepath.Join("scheduler", module)); {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	provisioner, err := output(ctx, "", "bin/lab", "binary", "csi-provisioner")
	if err != nil {
		return 0, err
	}
	return passed(ctx, append(env, "BERTH_TEST_PROVISIONER="+provisioner), "go",
		slices.Concat([]string{"-C", "scheduler", "test", "-json"}, older, []string{"-trimpath", "-timeout", "30m", "./test"})...)
}

// complete are the values without which no version renders a part that is on.
const complete = "imageRegistry=localhost,extender.tlsSecret=tls,extender.clientCASecret=ca,extender.marker.schedulerName=stock"

// refuses returns the values with which the chart does not render for a release, because of the release. It must
// render without them.
func refuses(ctx context.Context, release string) (all []string, _ error) {
	plain := []string{"template", "berth", "charts/berth", "--kube-version", release, "--set", complete}
	if _, err := output(ctx, "", "bin/helm", plain...); err != nil {
		return nil, err
	}
	for _, v := range values {
		c := exec.CommandContext(ctx, "bin/helm", append(slices.Clone(plain), "--set", parent(v), "--set", v+"=true")...)
		switch said, err := c.CombinedOutput(); {
		case err == nil:
		case bytes.Contains(said, []byte("this cluster is Kubernetes v"+release)):
			all = append(all, v)
		default:
			return nil, fmt.Errorf("%s: %w: %s", c, err, said)
		}
	}
	return all, nil
}

// parent turns the part of the chart on that a value belongs to: extender.enabled for extender.marker.enabled.
func parent(value string) string {
	part, _, _ := strings.Cut(value, ".")
	return part + ".enabled=true"
}

func output(ctx context.Context, env, program string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env, c.Stderr = append(os.Environ(), env), os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", c, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// passed runs a command that prints the events of go test, shows them as go test does, and returns how many tests
// passed.
func passed(ctx context.Context, env []string, program string, args ...string) (int, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // hack/native takes its lab down
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	n, err := count(out, os.Stdout)
	if failed := c.Wait(); failed != nil {
		return 0, fmt.Errorf("%s: %w", c, failed)
	}
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: no test ran", c)
	}
	return n, err
}

// count reads events of go test, and other lines. It returns how many tests passed, without their parts.
func count(in io.Reader, out io.Writer) (n int, _ error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) || json.Unmarshal(lines.Bytes(), &event) != nil {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		fmt.Fprint(out, event.Output)
		if event.Action == "pass" && event.Test != "" && !strings.Contains(event.Test, "/") {
			n++
		}
	}
	return n, lines.Err()
}

// minorOf is the minor version of a release: 1.36 of v1.36.4.
func minorOf(release string) string {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
