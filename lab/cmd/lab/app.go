package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/progress"
)

// app is the state that the commands share.
type app struct {
	report progress.Reporter
	close  func()
	name   string // of the cluster
}

func newApp() *app {
	report, stop := progress.New(os.Stderr)
	return &app{report: report, close: sync.OnceFunc(stop)}
}

// store returns the cache of everything the lab builds.
func (a *app) store() (*artefact.Store, error) {
	dir := os.Getenv("BERTH_LAB_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache directory (set BERTH_LAB_CACHE): %w", err)
		}
		dir = filepath.Join(base, "berth-lab")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	return &artefact.Store{Dir: dir, Report: a.report}, nil
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "A real Kubernetes on this machine, on virtual machines or in namespaces",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&a.name, "name", "default", "name of the cluster")
	root.AddCommand(
		a.up(), a.down(), a.status(), a.kubeconfig(),
		a.exec(), a.shell(), a.load(), a.logs(), a.api(),
		a.power(), a.disk(), a.san(), a.assets(), a.binary(), a.images(), a.image(), a.guest(), a.prune(), a.forward(),
	)
	root.AddCommand(a.faults()...)
	root.AddCommand(a.native()...)
	return root
}
