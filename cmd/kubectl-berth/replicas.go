package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/survey"
)

func newReplicasCommand(t *target, connect connector, now clock.PassiveClock) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "replicas [VOLUME | CLAIM]",
		Short: "List the replicas of volumes that can fail over: where they are, who writes, what waits",
		Long: `List the replicas of volumes that can fail over: where they are, who writes, what
waits.

A claim is NAME or NAMESPACE/NAME. Without a name all volumes are listed. STATE is
what the node said last, or Away if the node does not answer. EPOCH grows each time
that a node takes the volume; where several nodes write, each has an epoch of its
own. WAITS has the reason why the volume, or this replica,
does not go on; -o wide says what to do.`,
		Example: "  kubectl berth replicas\n  kubectl berth replicas data -n shop -o wide",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			reader, namespace, err := connect(*t)
			if err != nil {
				return err
			}
			found, err := gather(cmd.Context(), question{reader: reader, system: t.system, namespace: namespace, notes: cmd.ErrOrStderr()})
			if err != nil {
				return err
			}
			c := survey.Cluster{Lists: found.Lists, Heartbeats: found.Heartbeats}
			keep := func(*v1alpha1.Volume) bool { return true }
			if len(args) > 0 {
				keep = c.VolumesNamed(args[0], namespace)
			}
			rows := c.ReplicaRows(keep)
			if len(rows) == 0 && len(args) > 0 {
				return noReplicas(args[0])
			}
			return o.write(cmd.OutOrStdout(), rows, func(to io.Writer, wide bool) error {
				if len(rows) == 0 {
					_, err := fmt.Fprintln(cmd.ErrOrStderr(), "There are no volumes that can fail over.")
					return err
				}
				return replicaTable(rows, now.Now()).write(to, wide)
			})
		},
	}
	o.flag(cmd)
	cmd.ValidArgsFunction = completeNames("pvc", t, connect)
	return cmd
}

// noReplicas is the error about a name that stands for no volume with a record of ownership.
func noReplicas(name string) error {
	return fmt.Errorf("%s is neither a volume that can fail over nor the claim of one: kubectl berth replicas lists all", name)
}

// epoch is the number of an epoch, and a dash for none.
func epoch(number int64) string {
	if number == 0 {
		return "-"
	}
	return strconv.FormatInt(number, 10)
}

func replicaTable(rows []survey.Replica, now time.Time) table {
	t := table{header: []string{"NAMESPACE", "CLAIM", "NODE", "ROLE", "STATE", "EPOCH", "WAITS", "SINCE", "VOLUME", "MESSAGE"}, narrow: 8}
	for i := range rows {
		r := &rows[i]
		t.rows = append(t.rows, []string{
			cmp.Or(r.Namespace, "-"), cmp.Or(r.Claim, "-"), cmp.Or(r.Node, "-"), cmp.Or(r.Role, "-"), r.State, epoch(r.Epoch),
			cmp.Or(r.Reason, "-"), age(r.Since, now), r.Volume, r.Message,
		})
	}
	return t
}
