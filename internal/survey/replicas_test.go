package survey_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/survey"
)

const disk = "vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa"

// shared adds a shared disk to a cluster: n1 writes, n2 stands by. Its claim is known by its
// PersistentVolume alone.
func shared(c survey.Cluster, edits ...func(*v1alpha1.Volume)) survey.Cluster {
	e := v1alpha1.Epoch{Number: 7, ID: "seven"}
	v := v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: disk}}
	v.Spec.Driver, v.Spec.PoolClass = v1alpha1.DiskDriverName, "none"
	v.Spec.Replication = v1alpha1.Replication{Factor: 2, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{MaxShares: 2, Persistent: true}}
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: e, Lineage: []v1alpha1.Branch{{Epoch: e}}, Primary: v1alpha1.Primary{Node: "n2", Boot: "b", Phase: v1alpha1.PrimaryActive},
		Replicas: []v1alpha1.OwnedReplica{{Node: "n1", State: v1alpha1.OwnedReady}, {Node: "n2", State: v1alpha1.OwnedReady}},
	}
	for _, edit := range edits {
		edit(&v)
	}
	c.Volumes = append(c.Volumes, v)
	pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.DiskDriverName, VolumeHandle: disk}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "demo"}
	c.PersistentVolumes = append(c.PersistentVolumes, pv)
	return c
}

// several makes the disk one that several nodes write: n1 in epoch 6, and n2 in epoch 7.
func several(v *v1alpha1.Volume) {
	o := v.Status.Ownership
	v.Spec.Sharing, v.Spec.Replication.Factor = v1alpha1.Shared, 1
	o.Writers = []v1alpha1.Writer{
		{Node: "n1", Boot: "b", Phase: v1alpha1.PrimaryActive, Epoch: v1alpha1.Epoch{Number: 6, ID: "six"}},
		{Node: "n2", Boot: "b", Phase: v1alpha1.PrimaryActive, Epoch: o.Epoch},
	}
	o.Replicas = append(o.Replicas, v1alpha1.OwnedReplica{Node: "n3", State: v1alpha1.OwnedReady})
}

func all(*v1alpha1.Volume) bool { return true }

func waiting(v *v1alpha1.Volume) {
	v.Status.Conditions = append(v.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "NoProof", Message: "taint it", LastTransitionTime: metav1.Unix(5, 0)})
}

func TestReplicasAreListedWithWhatTheyWaitFor(t *testing.T) {
	row := func(node, role, state string) survey.Replica {
		return survey.Replica{Namespace: "shop", Claim: "demo", Volume: disk, Node: node, Role: role, State: state, Recorded: "Ready", Epoch: 7}
	}
	in := func(epoch int64, r survey.Replica) survey.Replica {
		r.Epoch = epoch
		return r
	}
	for name, test := range map[string]struct {
		edit func(*v1alpha1.Volume)
		away string
		want func() []survey.Replica
	}{
		"one node writes": {want: func() []survey.Replica {
			return []survey.Replica{row("n2", "Primary", "Ready"), row("n1", "Standby", "Ready")}
		}},
		"the standby's node is off": {away: "n1", want: func() []survey.Replica {
			off := row("n1", "Standby", "Away")
			off.Reason, off.Message = "NodeAway", "the Node is not ready; it said Ready last"
			return []survey.Replica{row("n2", "Primary", "Ready"), off}
		}},
		"a failover waits": {edit: waiting, want: func() []survey.Replica {
			first := row("n2", "Primary", "Ready")
			first.Reason, first.Message, first.Since = "NoProof", "taint it", &metav1.Time{Time: time.Unix(5, 0)}
			return []survey.Replica{first, row("n1", "Standby", "Ready")}
		}},
		"the writer is shut out": {edit: func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = v1alpha1.PrimaryFenced }, want: func() []survey.Replica {
			return []survey.Replica{row("n2", "Fenced", "Ready"), row("n1", "Standby", "Ready")}
		}},
		"the writer has let go": {edit: func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = v1alpha1.PrimaryReleased }, want: func() []survey.Replica {
			return []survey.Replica{row("n1", "Standby", "Ready"), row("n2", "Standby", "Ready")}
		}},
		"several nodes write": {edit: several, want: func() []survey.Replica {
			return []survey.Replica{in(6, row("n1", "Primary", "Ready")), row("n2", "Primary", "Ready"), in(0, row("n3", "Standby", "Ready"))}
		}},
		"one of several is shut out": {edit: func(v *v1alpha1.Volume) {
			several(v)
			v.Status.Ownership.Writers[0].Phase = v1alpha1.PrimaryFenced
		}, want: func() []survey.Replica {
			return []survey.Replica{row("n2", "Primary", "Ready"), in(6, row("n1", "Fenced", "Ready")), in(0, row("n3", "Standby", "Ready"))}
		}},
		"an attach failed": {edit: func(v *v1alpha1.Volume) {
			v.Status.Ownership.Replicas[0] = v1alpha1.OwnedReplica{Node: "n1", State: v1alpha1.OwnedFailed, Tries: 2, RetryAt: &metav1.Time{Time: time.Unix(9, 0)}}
		}, want: func() []survey.Replica {
			failed := row("n1", "Standby", "Failed")
			failed.Recorded, failed.Reason = "Failed", "AttachmentFailed"
			failed.Message = "attaching the disk to node n1 has failed 2 times; the next attempt is at 1970-01-01T00:00:09Z"
			return []survey.Replica{row("n2", "Primary", "Ready"), failed}
		}},
		"nothing is attached": {edit: func(v *v1alpha1.Volume) {
			v.Status.Ownership.Replicas, v.Status.Ownership.Primary = nil, v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased}
		}, want: func() []survey.Replica {
			return []survey.Replica{{Namespace: "shop", Claim: "demo", Volume: disk, State: "Released", Epoch: 7}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, away := well()
			if test.away != "" {
				away[test.away] = "the Node is not ready"
			}
			if test.edit == nil {
				test.edit = func(*v1alpha1.Volume) {}
			}
			if diff := cmp.Diff(test.want(), shared(c, test.edit).ReplicaRows(all)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAStandbyCountsIfItsNodeWouldTakeOver(t *testing.T) {
	for name, test := range map[string]struct {
		edit        func(*v1alpha1.Volume)
		away        string
		shall, take int
	}{
		"it is ready":        {shall: 1, take: 1},
		"its node is away":   {away: "n1", shall: 1},
		"it is not ready":    {edit: func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].State = v1alpha1.OwnedSyncing }, shall: 1},
		"no node writes":     {edit: func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = v1alpha1.PrimaryReleased }},
		"no record is there": {edit: func(v *v1alpha1.Volume) { v.Status.Ownership = nil }},
		"several nodes write, and the third needs no standby": {edit: several, take: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if test.edit == nil {
				test.edit = func(*v1alpha1.Volume) {}
			}
			c, _, _ := well()
			c = shared(c, test.edit)
			away := func(node string) string {
				if node == test.away {
					return "the Node is not ready"
				}
				return ""
			}
			if shall, take := survey.Standbys(&c.Volumes[len(c.Volumes)-1], away); shall != test.shall || take != test.take {
				t.Errorf("it shall have %d, and %d would take over; want %d and %d", shall, take, test.shall, test.take)
			}
		})
	}
}

func TestAVolumeIsFoundByItsNameAndByItsClaim(t *testing.T) {
	c, _, _ := well()
	c = shared(c)
	for name, want := range map[string]int{disk: 2, "demo": 2, "shop/demo": 2, "other/demo": 0, "data": 0, "nothing": 0} {
		if got := len(c.ReplicaRows(c.VolumesNamed(name, "shop"))); got != want {
			t.Errorf("%s: %d rows, want %d", name, got, want)
		}
	}
}

func TestASharedDiskIsReadyUnlessItWaits(t *testing.T) {
	begun := func(*v1alpha1.Volume) {}
	for want, edit := range map[string]func(*v1alpha1.Volume){
		"Ready": begun, "Waiting": waiting, "Deleting": func(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		c, _, _ := well()
		c = shared(c, edit)
		for _, row := range c.VolumeRows() {
			if row.Name == disk && (row.State != want || row.Claim != "demo" || len(row.Nodes) != 2) {
				t.Errorf("%+v, want %s", row, want)
			}
		}
	}
}
