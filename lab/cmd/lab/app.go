package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/cluster"
	"berth.dev/berth/lab/internal/progress"
)

// app is what the commands share: the report of progress, the way to the cache and the way to the
// cluster. Each command is a function of it, in the file of its group.
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

// lab says where clusters live and how they are made.
func (a *app) lab() (cluster.Lab, error) {
	store, err := a.store()
	if err != nil {
		return cluster.Lab{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return cluster.Lab{}, fmt.Errorf("finding the lab program: %w", err)
	}
	root := os.Getenv("BERTH_LAB_STATE")
	if root == "" {
		root = cluster.DefaultRoot
	}
	return cluster.Lab{Root: root, Store: store, Report: a.report, Self: self}, nil
}

// cluster opens the cluster that the user names.
func (a *app) cluster() (*cluster.Cluster, error) {
	lab, err := a.lab()
	if err != nil {
		return nil, err
	}
	return lab.Open(a.name)
}

// completeNodes completes the first argument to the name of a node.
func (a *app) completeNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.cluster()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.Settings().NodeNames(), cobra.ShellCompDirectiveNoFileComp
}

// rootCommand returns the program's command with all others below it.
func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "A real Kubernetes on this machine, on virtual machines or in namespaces",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&a.name, "name", "default", "name of the cluster")
	root.AddCommand(
		upCommand(a), downCommand(a), statusCommand(a), kubeconfigCommand(a),
		execCommand(a), shellCommand(a), loadCommand(a), logsCommand(a), apiCommand(a),
		powerCommand(a), diskCommand(a), sanCommand(a),
		assetsCommand(a), binaryCommand(a), imagesCommand(a), imageCommand(a), guestCommand(a),
		pruneCommand(a), forwardCommand(),
	)
	root.AddCommand(faultCommands(a)...)
	root.AddCommand(nativeCommands()...)
	return root
}
