package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/quarantine"
)

// bulk holds the flags of kubectl berth adopt --all.
type bulk struct {
	wanted, yes bool
	node        string
	output      output
}

func (b *bulk) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&b.wanted, "all", false, "adopt all data that no object accounts for")
	flags.StringVar(&b.node, "node", "", "with --all: only data of this node")
	flags.BoolVar(&b.yes, "yes", false, "with --all: carry the plan out; without it the command only prints the plan")
	b.output.flag(cmd)
	for _, one := range []string{"claim", "volume-snapshot"} {
		cmd.MarkFlagsMutuallyExclusive("all", one)
	}
}

// args wants a node and a name, or neither if all data is meant.
func (b *bulk) args(cmd *cobra.Command, args []string) error {
	if b.wanted {
		return cobra.NoArgs(cmd, args)
	}
	return cobra.ExactArgs(2)(cmd, args)
}

// check refuses flags that say nothing without --all.
func (b *bulk) check(cmd *cobra.Command) error {
	for _, name := range []string{"node", "yes", "output"} {
		if !b.wanted && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is for --all", name)
		}
	}
	return b.output.check()
}

// run prints the plan, or carries it out and prints its result.
func (b *bulk) run(cmd *cobra.Command, c client.Client, w adoptionWish) error {
	facts, err := quarantine.Gather(cmd.Context(), c, b.node, w.poolClass)
	if err != nil {
		return err
	}
	steps := quarantine.Plan(facts)
	if b.yes {
		steps = quarantine.Carry(cmd.Context(), c, steps, w.poolClass, w.storageClass)
	}
	err = b.output.write(cmd.OutOrStdout(), steps, func(to io.Writer, wide bool) error { return writeSteps(to, steps, wide) })
	if err != nil {
		return err
	}
	return b.judge(steps)
}

// judge returns an error if something is left to do.
func (b *bulk) judge(steps []quarantine.Step) error {
	var failed, refused, adopt int
	for _, s := range steps {
		switch {
		case s.Error != "":
			failed++
		case s.Action == decide.Refuse:
			refused++
		case s.Action == quarantine.Adopting:
			adopt++
		}
	}
	switch {
	case !b.yes && adopt > 0:
		return errUnconfirmed
	case failed+refused > 0:
		return fmt.Errorf("%d failed and %d are refused: see above, and repeat the command when that is solved", failed, refused)
	}
	return nil
}

func writeSteps(to io.Writer, steps []quarantine.Step, wide bool) error {
	if len(steps) == 0 {
		_, err := fmt.Fprintln(to, "There is no data to adopt.")
		return err
	}
	t := table{header: []string{"ACTION", "NODE", "NAME", "CLAIM", "SIZE", "POOL"}, narrow: 4}
	for _, s := range steps {
		did := string(s.Action)
		switch {
		case s.Error != "":
			did = "Failed"
		case s.Done:
			did = "Adopted"
		}
		t.rows = append(t.rows, []string{did, s.Node, s.Name, cmp.Or(s.Claim, "-"), s.Size.String(), s.Pool})
	}
	err := t.write(to, wide)
	for _, s := range steps {
		if why := cmp.Or(s.Error, s.Reason); why != "" {
			_, failed := fmt.Fprintf(to, "\n%s on node %s:\n  %s\n", s.Name, s.Node, plain.Line(why))
			err = errors.Join(err, failed)
		}
	}
	return err
}
