package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// suite is one run on one kind of pools.
type suite struct {
	*cluster.Cluster
	name  string
	procs int
	focus string
	dir   string
}

// readiness is how long pools may take until they are served.
const readiness = 5 * time.Minute

// prepare makes what the suite needs, as far as it is not there.
func (s *suite) prepare(ctx context.Context, v variant) error {
	dir, err := filepath.Abs(filepath.Join("bin", "upstream", s.name))
	if err != nil {
		return err
	}
	s.dir = dir
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := loadImages(ctx, s.Lab, s.dir); err != nil {
		return err
	}
	nodes, err := install.Nodes(ctx, s.Lab)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := v.pools(ctx, s.Lab, n); err != nil {
			return err
		}
	}
	if err := makeClasses(ctx, s.Cluster, v); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readiness)
	defer cancel()
	return awaitPools(ctx, s.Cluster, nodes, v.spec.Provisioner)
}

// run runs the suite, and returns what it says. It returns an error if a spec failed.
func (s *suite) run(ctx context.Context) (*types.Report, error) {
	ginkgo, err := s.Lab.Output(ctx, "binary", "ginkgo")
	if err != nil {
		return nil, err
	}
	program, err := s.Lab.Output(ctx, "binary", "upstream.test")
	if err != nil {
		return nil, err
	}
	args, err := s.arguments(ctx, program)
	if err != nil {
		return nil, err
	}
	report := filepath.Join(s.dir, "report.json")
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, "suite.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(os.Stderr, "running the suite; %s has its output\n", log.Name())
	command := exec.CommandContext(ctx, ginkgo, args...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // ginkgo then ends its processes and reports
	command.WaitDelay = 5 * time.Minute
	command.Env = append(os.Environ(), "KUBE_TEST_REPO_LIST="+filepath.Join(s.dir, "registries.yaml"))
	runErr := command.Run()
	text, err := os.ReadFile(report)
	if err != nil {
		return nil, errors.Join(runErr, err)
	}
	var reports []types.Report
	if err := json.Unmarshal(text, &reports); err != nil || len(reports) != 1 {
		return nil, fmt.Errorf("reading the suite's report of %d parts: %w", len(reports), err)
	}
	if runErr != nil {
		runErr = fmt.Errorf("the suite: %w", runErr)
	}
	return &reports[0], runErr
}

// arguments are those of ginkgo, and after -- those of the suite.
func (s *suite) arguments(ctx context.Context, program string) ([]string, error) {
	kubeconfig, err := s.Lab.Output(ctx, "kubeconfig")
	if err != nil {
		return nil, err
	}
	driver, err := filepath.Abs(filepath.Join("test", "upstream", "drivers", s.name+".yaml"))
	if err != nil {
		return nil, err
	}
	lists := "promoterE2eRegistry: " + registry + "\ngcRegistry: " + registry + "\n"
	if err := os.WriteFile(filepath.Join(s.dir, "registries.yaml"), []byte(lists), 0o644); err != nil {
		return nil, err
	}
	var skipped []string
	for _, k := range skips {
		skipped = append(skipped, k.pattern)
	}
	args := []string{
		fmt.Sprintf("--procs=%d", s.procs), "--no-color", "--timeout=6h", "--poll-progress-after=10m",
		"--json-report=report.json", "--output-dir=" + s.dir, "--focus=External.Storage.*" + s.focus,
	}
	if len(skipped) > 0 {
		args = append(args, "--skip="+strings.Join(skipped, "|"))
	}
	return append(args, program, "--",
		"-provider=skeleton", "-kubeconfig="+kubeconfig, "-storage.testdriver="+driver, "-delete-namespace-on-failure=true",
		"-num-nodes=-1", "-allowed-not-ready-nodes=0"), nil
}
