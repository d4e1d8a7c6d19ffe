package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/internal/doctor"
	"berth.dev/berth/internal/plain"
)

// findingsError says how many disagreements were found.
type findingsError int

func (n findingsError) Error() string {
	if n == 1 {
		return "1 disagreement"
	}
	return fmt.Sprintf("%d disagreements", int(n))
}

// pause waits between two looks at the cluster.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Second):
		return nil
	}
}

// newDoctorCommand compares the objects of the cluster with each other.
func newDoctorCommand(t *target, connect connector, pause func(context.Context) error) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "List where claims, snapshots, their objects and nodes disagree, and the way out",
		Long: `List where claims, PersistentVolumes, Volumes, VolumeSnapshots, Snapshots and nodes
disagree, and the way out.

Nothing is changed. Exit status: 0 all agrees, 2 there are findings, 1 the cluster
could not be read.`,
		Example: "  kubectl berth doctor\n  kubectl berth doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			reader, namespace, err := connect(*t)
			if err != nil {
				return err
			}
			found, err := diagnose(cmd.Context(), question{reader: reader, system: t.system, namespace: namespace, notes: cmd.ErrOrStderr()}, pause)
			if err != nil {
				return err
			}
			err = o.write(cmd.OutOrStdout(), found, func(to io.Writer, _ bool) error { return writeFindings(to, found) })
			if err == nil && len(found) > 0 {
				err = findingsError(len(found))
			}
			return err
		},
	}
	o.flag(cmd)
	return cmd
}

// diagnose looks twice, unless the first look finds nothing.
func diagnose(ctx context.Context, q question, pause func(context.Context) error) ([]doctor.Finding, error) {
	first, err := examine(ctx, q)
	if err != nil || len(first) == 0 {
		return first, err
	}
	if err := pause(ctx); err != nil {
		return nil, err
	}
	q.notes = io.Discard // the first look has told them
	second, err := examine(ctx, q)
	return doctor.Confirmed(first, second), err
}

func writeFindings(to io.Writer, found []doctor.Finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(to, "%s %s\n  %s\n  %s\n", f.Severity, f.ID, plain.Line(f.Subject()), plain.Line(f.Message)); err != nil {
			return err
		}
		for _, command := range f.Next {
			if _, err := fmt.Fprintf(to, "  next: %s\n", plain.Line(command)); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(to); err != nil {
			return err
		}
	}
	last := "All agrees."
	if len(found) > 0 {
		last = findingsError(len(found)).Error() + "."
	}
	_, err := fmt.Fprintln(to, last)
	return err
}
