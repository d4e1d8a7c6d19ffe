package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
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

// The forms of the list.
const (
	asTable = ""
	asWide  = "wide"
	asJSON  = "json"
)

func newOrphansCommand(t *target, open opener, now clock.PassiveClock) *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List data that no object accounts for, and objects whose data is missing",
		Long: `List data that no object accounts for, and objects whose data is missing.

An object is missing (MISSING Object): the data is kept on its node. Adopt it,
forget it, or restore the object.
The data is missing (MISSING Data): the object is kept. Bring the disk or the
node back, or delete the object.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if form != asTable && form != asWide && form != asJSON {
				return fmt.Errorf("--output %q is neither %s nor %s", form, asWide, asJSON)
			}
			c, _, err := open(*t)
			if err != nil {
				return err
			}
			found, err := quarantine.List(cmd.Context(), c)
			if err != nil {
				return err
			}
			return show(cmd, found, form, now.Now())
		},
	}
	cmd.Flags().StringVarP(&form, "output", "o", asTable, "form of the list: wide or json")
	return cmd
}

func show(cmd *cobra.Command, found []quarantine.Orphan, form string, now time.Time) error {
	switch {
	case form == asJSON:
		return writeJSON(cmd.OutOrStdout(), found)
	case len(found) == 0:
		_, err := fmt.Fprintln(cmd.ErrOrStderr(), "There are no orphans.")
		return err
	}
	return writeTable(cmd.OutOrStdout(), found, form == asWide, now)
}

func writeJSON(w io.Writer, found []quarantine.Orphan) error {
	if found == nil {
		found = []quarantine.Orphan{} // an empty list and not null
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(found)
}

func writeTable(w io.Writer, found []quarantine.Orphan, wide bool, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header, end := "NODE\tPOOL\tNAME\tSIZE\tMISSING\tAGE\tREASON\tDELETED", "\n"
	if wide {
		header += "\tMESSAGE"
	}
	_, _ = fmt.Fprintln(table, header) // an error shows at Flush
	for _, o := range found {
		if wide {
			end = "\t" + o.Message + "\n"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s",
			o.Node, o.Pool, o.Name, o.Size.String(), o.Missing, age(o.Since, now), o.Reason, deleted(o, now), end)
	}
	return table.Flush()
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
