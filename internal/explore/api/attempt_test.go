package api

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/explore"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// The processes beside the agents, which are named after their nodes.
const (
	controller = "controller"
	scheduler  = "scheduler"
	// person is an administrator who may do everything that a role can allow.
	person = "person"
	// stranger is the agent of a node that never has a replica.
	stranger = "stranger"
)

var everybody = []string{"a", "b", "c", "d", stranger, controller, scheduler, person}

// actor is the process that made the write. Both controllers have one account.
func actor(w explore.Written) string {
	if slices.Contains(everybody, w.By) {
		return w.By
	}
	return controller
}

// object is a Volume with the parameters and the record.
func object(name string, v *ownership.Volume) (*v1alpha1.Volume, error) {
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.VolumeFinalizer}}, Spec: v1alpha1.VolumeSpec{
		Capacity: *resource.NewQuantity(v.Size, resource.BinarySI), VolumeMode: v1alpha1.Block, PoolClass: "fast", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
		Replication: v1alpha1.Replication{Factor: int32(v.Factor), Kind: v1alpha1.ReplicationKind(v.Kind.String()),
			Failover: &v1alpha1.Failover{Automatic: v.Failover.Automatic, MaxDataLoss: &metav1.Duration{Duration: v.Failover.MaxDataLoss}}},
	}}
	if v.Kind.Traits().Attaches {
		o.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: int32(v.Sharing.MaxShares), Yields: v.Sharing.Yields, Persistent: v.Sharing.Persistent}
	}
	if v.Sharing.ManyWriters {
		o.Spec.Sharing = v1alpha1.Shared
	}
	if v.Deleting {
		o.DeletionTimestamp = &metav1.Time{}
		*o.DeletionTimestamp = metav1.Unix(1, 0)
	}
	return record.Into(o, v)
}

// others are the processes that must not make the write. Four writes have more than one possible
// author: a new epoch looks like a repair, which every node with a replica and every controller
// may write; a replica that was to go is counted on again by the controller or its node; the removal of an
// attachment is ended by its node, or by a controller if the cluster has no such node; and an account with the
// right to create failovers.berth.dev may ask a standby to shut the writer out, as controllers do. Here a
// scheduler's account has that right, too: its role has every right of the group, and the chart's has not.
func others(w explore.Written) (wrong []string) {
	for _, who := range everybody {
		if who == actor(w) || mayRepair(w, who) || who == controller && (again(w) != "" || len(ends(w)) > 0) || again(w) == who || slices.Equal(ends(w), []string{who}) || (who == person || who == scheduler) && asks(w) {
			continue
		}
		wrong = append(wrong, who)
	}
	return wrong
}

func mayRepair(w explore.Written, who string) bool {
	if _, has := w.Before.Replica(who); !has && who != controller {
		return false
	}
	if w.Before.Sharing.ManyWriters {
		n := begins(w)
		return n != "" && (who == controller || who == n)
	}
	if w.Before.Epoch == w.After.Epoch {
		return false
	}
	// A node without an entry adds its own while it repairs the record. No other may.
	for _, e := range w.After.Replicas {
		if _, had := w.Before.Replica(e.Node); !had && e.Node != who && e.Node != w.After.Primary.Node {
			return false
		}
	}
	return true
}

// begins is the node, of several that write, whose epoch is another one after the write; empty if there is none.
func begins(w explore.Written) string {
	for _, o := range w.After.AllWriters() {
		if n := o.Primary.Node; w.Before.On(n).Epoch != o.Epoch {
			return n
		}
	}
	return ""
}

// asks tells whether a standby is asked to shut a writer out.
func asks(w explore.Written) bool {
	return slices.ContainsFunc(w.After.AllWriters(), func(o ownership.Writer) bool {
		return o.FenceRequest != (ownership.FenceRequest{}) && o.FenceRequest != w.Before.On(o.Primary.Node).FenceRequest
	})
}

// again is the node whose replica is counted on again, if that is all that changes.
func again(w explore.Written) string {
	if w.Before.Epoch != w.After.Epoch || w.Before.ExpireAt != w.After.ExpireAt {
		return ""
	}
	for _, e := range w.After.Replicas {
		if old, had := w.Before.Replica(e.Node); had && old.State == ownership.Removing && e.State == ownership.Syncing {
			return e.Node
		}
	}
	return ""
}

// ends are the nodes of attachments whose removal ends, if that is all that changes.
func ends(w explore.Written) (nodes []string) {
	ended := *w.Before
	ended.Replicas = slices.Clone(w.Before.Replicas)
	for i, e := range w.After.Replicas {
		if i < len(ended.Replicas) && e.State == ownership.Gone && ended.Replicas[i].State == ownership.Removing {
			ended.Replicas[i].State = ownership.Gone
			nodes = append(nodes, e.Node)
		}
	}
	if !w.Before.Kind.Traits().Attaches || !reflect.DeepEqual(&ended, w.After) {
		return nil
	}
	return nodes
}

// unseen are the mistakes that an API server cannot see in a write, each with the reason.
var unseen = map[string]string{
	"one writer: epoch":              "a takeover of an open epoch looks like the repair of a record that a backup brought back",
	"epoch: was issued before":       "the API server does not remember the epochs before a backup",
	"stopped:":                       "only the node knows whether it has given its epoch up",
	"fence:":                         "only the machine or the disk knows whether the writer is stopped",
	"brake:":                         "the API server does not count lost nodes",
	"policy: going on":               "the API server does not know the age of a snapshot",
	"policy: epoch":                  "the API server does not see whether an administrator has declared a machine to be off",
	"recovery point:":                "the API server does not see snapshots",
	"lineage:":                       "the API server does not see data",
	"lost writes: the mended record": "what a promise lists is not in the record",
	"lost writes: epoch":             "what a reachable node knows is not in the record",
	"expiry:":                        "the API server does not know which pods use the volume",
	"attachment:":                    "the API server does not know which pods use the volume, and which slots are wanted",
	"leak:":                          "only the provisioner knows what is attached",
}

// life plays a schedule and returns its writes.
func life(seed uint64, rules *explore.Rules) (writes []explore.Written) {
	rules.Journal = func(w explore.Written) { writes = append(writes, w) }
	explore.Random(seed, rules, nil)
	return writes
}

func kindOf(w explore.Written) string {
	switch old, next := w.Before, w.After; {
	case w.Mended:
		return "repairs"
	case old.Epoch != next.Epoch:
		return "takeovers"
	case old.Primary != next.Primary:
		return fmt.Sprintf("%v to %v", old.Primary.Phase, next.Primary.Phase)
	}
	return "entries and the rest"
}

// whyUnseen is the reason why the API server cannot refuse a write with this violation, empty if it
// must refuse it.
func whyUnseen(w explore.Written) string {
	violation := w.Wrong
	if strings.Contains(violation, "was issued before") {
		return unseen["epoch: was issued before"]
	}
	if strings.Contains(violation, "no loss is recorded") && w.After.Primary.Phase == ownership.Released {
		return unseen["lineage:"] // a release says that it has all
	}
	if strings.Contains(violation, "no loss is recorded") || strings.HasPrefix(violation, "attachment: the owner") {
		return ""
	}
	for start, reason := range unseen {
		if strings.HasPrefix(violation, start) {
			return reason
		}
	}
	return ""
}
