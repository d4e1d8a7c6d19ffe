package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/check"
)

// checkFlags say which installation is asked about.
type checkFlags struct {
	check.Installation
	kubeconfig string
	timeout    time.Duration
}

func newCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Wait until the installation works, and say what is wrong if it does not: helm test runs it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Namespace, "namespace", namespaceFromEnvironment(), "namespace that Berth is installed in")
	flags.StringVar(&f.Name, "name", "berth", "name that the installation's objects begin with")
	flags.BoolVar(&f.Guard, "guard", false, "guards are installed, and are looked at, too")
	flags.BoolVar(&f.Disk, "disk", false, "the programs of shared disks are installed, and are looked at, too")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty means that the process runs in the cluster")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Minute, "how long to wait")
	return cmd
}

func (f *checkFlags) run(ctx context.Context, out io.Writer) error {
	config, err := clusterConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	c, err := clusterClient(config)
	if err != nil {
		return err
	}
	return awaitNoProblems(ctx, c, f, out)
}

// awaitNoProblems asks again every two seconds until the installation works or time is up.
func awaitNoProblems(ctx context.Context, c client.Reader, f *checkFlags, out io.Writer) error {
	last := errors.New("the API server did not answer")
	err := wait.PollUntilContextTimeout(ctx, 2*time.Second, f.timeout, true, func(ctx context.Context) (bool, error) {
		facts, err := check.Gather(ctx, c, f.Installation)
		if err != nil {
			// The error of time that is up says less than the one before.
			if ctx.Err() == nil {
				last = err
			}
			return false, nil
		}
		if problems := check.Problems(facts); len(problems) > 0 {
			last = errors.New(strings.Join(problems, "; "))
			return false, nil
		}
		_, err = fmt.Fprintf(out, "%d controllers and %d nodes are ready\n", facts.Controller.Status.ReadyReplicas, facts.Agents.Status.NumberReady)
		return true, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the installation does not work: %w", last)
	}
	return err
}
