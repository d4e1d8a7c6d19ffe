package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/quarantine"
)

// errUnconfirmed is the error of a command without --yes.
var errUnconfirmed = errors.New("nothing was done: repeat the command with --yes")

func newForgetCommand(t *target, open opener, now clock.PassiveClock) *cobra.Command {
	var yes, undo, gone bool
	cmd := &cobra.Command{
		Use:   "forget NODE NAME | forget NODE --node-is-gone",
		Short: "Let a node delete data that no object accounts for, or objects go whose node is gone",
		Long: `Let a node delete a volume or a snapshot that no object accounts for. The
data is lost for good. The node deletes it as soon as nobody uses it, within a
day, if it is still the same data and still has no object; until then --undo
takes the word back.

With --node-is-gone: let Volumes and Snapshots go that are deleted, now or later,
and would wait for a node that does not come back. There must be no Node of that
name. No data is deleted: a node that does come back reports it as orphans.`,
		Example: `  # Say what would be deleted; then let the node delete it.
  kubectl berth forget node-3 pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f
  kubectl berth forget node-3 pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f --yes

  # Do not wait for a node that does not come back.
  kubectl berth forget node-3 --node-is-gone --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if gone {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := open(*t)
			if err != nil {
				return err
			}
			if gone {
				return forgetNode(cmd, c, args[0], yes, undo)
			}
			if undo {
				return remember(cmd, c, args[0], args[1])
			}
			if !yes {
				return preview(cmd, c, args[0], args[1])
			}
			o, err := quarantine.Forget(cmd.Context(), c, args[0], args[1], now.Now())
			if err != nil {
				return err
			}
			return describe(cmd.OutOrStdout(), "To be deleted as soon as it is not in use:", o)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete the data; without it the command only says what it would delete")
	cmd.Flags().BoolVar(&undo, "undo", false, "take the word back, as long as the data, or the object, is there")
	cmd.Flags().BoolVar(&gone, "node-is-gone", false, "the node does not come back: do not wait for it")
	cmd.MarkFlagsMutuallyExclusive("yes", "undo")
	cmd.ValidArgsFunction = completeOrphans(t, open)
	return cmd
}

// forgetNode is for a node that is gone for good.
func forgetNode(cmd *cobra.Command, c client.Client, node string, yes, undo bool) error {
	what, say := "These do not wait for node "+node+" once they are deleted:", quarantine.ForgetNode
	var after error
	switch {
	case undo:
		what, say = "These wait for node "+node+" when they are deleted:", quarantine.RememberNode
	case !yes:
		what, after = "These would not wait for node "+node+" once they are deleted:", errUnconfirmed
		say = func(ctx context.Context, c client.Client, node string) ([]quarantine.Remnant, error) {
			return quarantine.Remnants(ctx, c, node)
		}
	}
	found, err := say(cmd.Context(), c, node)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), what); err != nil {
		return err
	}
	for _, r := range found {
		note := ""
		if r.Deleting {
			note = ", which is being deleted"
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "  %s %s%s\n", r.Kind, r.Name, note); err != nil {
			return err
		}
	}
	return after
}

// preview says what would be deleted.
func preview(cmd *cobra.Command, c client.Client, node, name string) error {
	o, err := quarantine.Lookup(cmd.Context(), c, node, name)
	if err != nil {
		return err
	}
	return errors.Join(describe(cmd.OutOrStdout(), "This would delete", o), errUnconfirmed)
}

func describe(w io.Writer, what string, o quarantine.Orphan) error {
	_, err := fmt.Fprintf(w, "%s %s, %s in pool %s of node %s\n", what, o.Name, o.Size.String(), o.Pool, o.Node)
	return err
}

func remember(cmd *cobra.Command, c client.Client, node, name string) error {
	was, err := quarantine.Remember(cmd.Context(), c, node, name)
	if err != nil {
		return err
	}
	if !was {
		return fmt.Errorf("%s on node %s was not to be deleted", name, node)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s on node %s is kept, unless the node was about to delete it: kubectl berth orphans\n", name, node)
	return err
}
