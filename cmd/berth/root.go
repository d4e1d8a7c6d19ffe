package main

import (
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// subcommands are the processes, and questions about them. Each file of one adds its constructor.
var subcommands = []func() *cobra.Command{newVersionCommand, newControllerCommand, newAgentCommand, newPooldCommand, newGuardCommand, newCheckCommand, newReplicateCommand}

// levels are the values of --log-level. Detail also shows the requests of CSI calls.
var levels = map[string]slog.Level{
	"error": slog.LevelError,
	"info":  slog.LevelInfo,
	"debug": slog.LevelDebug,
}

func newRootCommand() *cobra.Command {
	var level string
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Storage for Kubernetes out of what the nodes have",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return setUpLogging(level)
		},
	}
	root.PersistentFlags().StringVar(&level, "log-level", "info", "how much to log: error, info or debug")
	root.CompletionOptions.DisableDefaultCmd = true
	for _, subcommand := range subcommands {
		root.AddCommand(subcommand())
	}
	return root
}

// loggingOnce: Kubernetes' libraries read the logger without a lock, so it is set before they begin, and once.
var loggingOnce sync.Once

// setUpLogging makes every library log in one form, one JSON object a line, to
// standard error.
func setUpLogging(level string) error {
	chosen, known := levels[level]
	if !known {
		return fmt.Errorf("--log-level %q is not one of error, info, debug", level)
	}
	loggingOnce.Do(func() {
		log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: chosen}))
		ctrl.SetLogger(log)
		klog.SetLogger(log)
	})
	return nil
}
