package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/artefact"
)

func pruneCommand(a *app) *cobra.Command {
	p := pruning{unused: 14 * 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove from the cache what was not used for a while",
		Long: `Remove from the cache what was not used for a while.

Whatever was used since the oldest cluster began stays, up or not. What is removed
is built again when it is needed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if p.unused < 0 {
				return fmt.Errorf("--unused %s is in the future", p.unused)
			}
			if p.store, err = a.store(); err != nil {
				return err
			}
			p.now, p.out = time.Now(), cmd.OutOrStdout()
			return p.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&p.unused, "unused", p.unused, "how long nobody must have used it")
	flags.BoolVar(&p.dry, "dry-run", false, "only show what would be removed")
	return cmd
}

// pruning is one run of the command.
type pruning struct {
	store  *artefact.Store
	unused time.Duration
	dry    bool
	now    time.Time
	out    io.Writer
}

func (p pruning) run(ctx context.Context) error {
	// Held comes before the list: an artefact that a cluster takes from now on is younger
	// than the list.
	holder, held, err := p.store.Held()
	if err != nil {
		return err
	}
	since := p.now.Add(-p.unused)
	if holder != "" && held.Before(since) {
		since = held
	} else {
		holder = ""
	}
	all, err := p.store.Entries()
	if err != nil {
		return err
	}
	stale := artefact.Stale(all, since)
	slices.SortFunc(stale, func(a, b artefact.Entry) int { return a.Used.Compare(b.Used) })
	removed, err := p.remove(ctx, stale)
	if printErr := p.print(removed, all, holder); printErr != nil {
		return printErr
	}
	return err
}

// remove returns the entries that it removed, also with an error.
func (p pruning) remove(ctx context.Context, stale []artefact.Entry) (removed []artefact.Entry, err error) {
	if p.dry {
		return stale, nil
	}
	for _, e := range stale {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		done, err := p.store.Remove(ctx, e)
		if err != nil {
			return removed, err
		}
		if done {
			removed = append(removed, e)
		}
	}
	return removed, nil
}

func (p pruning) print(removed, all []artefact.Entry, holder string) error {
	t := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	if len(removed) > 0 {
		fmt.Fprintln(t, "ARTEFACT\tSIZE\tLAST USED")
	}
	for _, e := range removed {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Name, mebibytes(e.Size), ago(p.now, e.Used))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	done := "removed"
	if p.dry {
		done = "would be removed"
	}
	_, err := fmt.Fprintf(p.out, "%d of %d artefacts, %s of %s, %s.\n", len(removed), len(all), mebibytes(total(removed)), mebibytes(total(all)), done)
	if err == nil && holder != "" {
		_, err = fmt.Fprintf(p.out, "What was used since the cluster of %s began stays.\n", holder)
	}
	return err
}

func total(all []artefact.Entry) (bytes int64) {
	for _, e := range all {
		bytes += e.Size
	}
	return bytes
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1fM", float64(n)/(1<<20)) }

func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%dd ago", int(now.Sub(t).Hours()/24))
}
