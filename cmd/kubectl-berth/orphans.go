package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quarantine"
)

// opener opens a cluster to change it; it also returns the default namespace.
type opener func(target) (c client.Client, namespace string, err error)

// orphanCommands are about data and objects that have lost each other.
func orphanCommands(t *target, open opener) []*cobra.Command {
	return []*cobra.Command{
		newOrphansCommand(t, open, clock.RealClock{}), newAdoptCommand(t, open), newForgetCommand(t, open, clock.RealClock{}),
	}
}

func newOrphansCommand(t *target, open opener, now clock.PassiveClock) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List data that no object accounts for, and objects whose data is missing",
		Long: `List data that no object accounts for, and objects whose data is missing.

An object is missing (MISSING Object): the data is kept on its node. Adopt it,
forget it, or restore the object.
The data is missing (MISSING Data): the object is kept. Bring the disk or the
node back, or delete the object.`,
		Example: "  kubectl berth orphans\n  kubectl berth orphans -o wide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, _, err := open(*t)
			if err != nil {
				return err
			}
			found, err := quarantine.List(cmd.Context(), c)
			if err != nil {
				return err
			}
			return show(cmd, found, o, now.Now())
		},
	}
	o.flag(cmd)
	return cmd
}

func show(cmd *cobra.Command, found []quarantine.Orphan, o output, now time.Time) error {
	if found == nil {
		found = []quarantine.Orphan{} // a document has an empty list and not null
	}
	return o.write(cmd.OutOrStdout(), found, func(to io.Writer, wide bool) error {
		if len(found) == 0 {
			_, err := fmt.Fprintln(cmd.ErrOrStderr(), "There are no orphans.")
			return err
		}
		t := table{header: []string{"NODE", "POOL", "NAME", "SIZE", "MISSING", "AGE", "REASON", "DELETED", "MESSAGE"}, narrow: 8}
		for _, o := range found {
			t.rows = append(t.rows, []string{
				o.Node, o.Pool, o.Name, o.Size.String(), string(o.Missing), age(o.Since, now), o.Reason, deleted(o, now), o.Message,
			})
		}
		return t.write(to, wide)
	})
}

func age(since *metav1.Time, now time.Time) string {
	if since == nil {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(since.Time), 0))
}

// deleted says when data is deleted.
func deleted(o quarantine.Orphan, now time.Time) string {
	switch {
	case o.Missing == quarantine.MissingData:
		return "-"
	case o.Forgotten != nil && now.Sub(o.Forgotten.Time) <= v1alpha1.ForgetValid:
		return "now"
	case o.Deadline == nil:
		return "never"
	case o.Deadline.After(now):
		return "in " + duration.HumanDuration(o.Deadline.Sub(now))
	default:
		return "due"
	}
}
