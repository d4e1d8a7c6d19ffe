package cases

import (
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// clone is a claim that is made from another one.
func clone(c corev1.PersistentVolumeClaim, of string) corev1.PersistentVolumeClaim {
	c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: of}
	return c
}

// restore is a claim that is made from a VolumeSnapshot.
func restore(c corev1.PersistentVolumeClaim, of string) corev1.PersistentVolumeClaim {
	c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: of}
	return c
}

// source adds a bound claim with its volume on a node.
func source(name, node string, bytes int64) func(*schedule.Lists) {
	return func(l *schedule.Lists) {
		c, v := claim(name, bytes), volume(name, node, bytes)
		c.Spec.VolumeName = v.Name
		pv := corev1.PersistentVolume{}
		pv.Name, pv.Spec.StorageClassName = v.Name, "local"
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: v.Name}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
		l.Claims, l.Volumes, l.PersistentVolumes = append(l.Claims, c), append(l.Volumes, v), append(l.PersistentVolumes, pv)
	}
}

// snapshotID is the id of the snapshot of this name, which is one digit.
func snapshotID(name string) string { return "snap-" + uidPrefix + name }

// taken is a snapshot of Berth's without any problem.
func taken(name string) schedule.VolumeSnapshot {
	return schedule.VolumeSnapshot{Namespace: "shop", Name: name, Ready: true, Driver: v1alpha1.LocalDriverName, Handle: snapshotID(name)}
}

// snapshots adds VolumeSnapshots; without any, the cluster knows no such objects.
func snapshots(s ...schedule.VolumeSnapshot) func(*schedule.Lists) {
	return func(l *schedule.Lists) {
		l.VolumeSnapshots = append(append([]schedule.VolumeSnapshot{}, l.VolumeSnapshots...), s...)
	}
}

// kept adds a node's report of the snapshot of this name.
func kept(name, node, pool string, state v1alpha1.SnapshotState) func(*schedule.Lists) {
	return func(l *schedule.Lists) {
		s := v1alpha1.Snapshot{}
		s.Name = snapshotID(name)
		s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: pool}}
		s.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: node, Pool: pool, State: state}}
		l.Snapshots = append(l.Snapshots, s)
	}
}

// elsewhere is the answer of a node that lacks the source.
func elsewhere(told string) Answer { return Answer{Reason: ledger.SourceElsewhere, Told: told} }

// copies are about claims that are made from a source.
func copies() map[string]Case {
	return map[string]Case{
		"a clone goes to the node of its source": {
			Lists: with(two(), claims(clone(claim("1", gi), "8")), source("8", "small", gi)), Pod: pod("1"), Best: "small",
			Nodes: map[string]Answer{"large": elsewhere(`claim "1" is made from claim "8", which is on node small`), "small": fits(pools{"1": "vg0"})},
		},
		"a clone fits nowhere if its source's node is full": {
			Lists: with(two(), claims(clone(claim("1", 2*gi), "8")), source("8", "small", 3*gi)), Pod: pod("1"),
			Nodes: map[string]Answer{"large": elsewhere(`claim "1" is made from claim "8", which is on node small`), "small": not(ledger.NoRoom)},
		},
		"a restored claim goes to the node of its snapshot": {
			Lists: with(two(), claims(restore(claim("1", gi), "7")), snapshots(taken("7")), kept("7", "small", "vg0", v1alpha1.SnapshotReady)), Pod: pod("1"), Best: "small",
			Nodes: map[string]Answer{"large": elsewhere(`claim "1" is made from snapshot "7", which is on node small`), "small": fits(pools{"1": "vg0"})},
		},
		"a restored claim goes into the pool of its snapshot": {
			Lists: with(cluster(node("n", 20*gi, 4*gi)), claims(restore(claim("1", gi), "7")), snapshots(taken("7")), kept("7", "n", "vg1", v1alpha1.SnapshotReady)), Pod: pod("1"),
			Nodes: map[string]Answer{"n": fits(pools{"1": "vg1"})},
		},
		"claims whose sources are on two nodes fit on neither": {
			Lists: with(two(), claims(restore(claim("1", gi), "7"), clone(claim("2", gi), "8")),
				snapshots(taken("7")), kept("7", "large", "vg0", v1alpha1.SnapshotReady), source("8", "small", gi)), Pod: pod("1", "2"),
			Nodes: map[string]Answer{"large": elsewhere(`claim "2" is made from claim "8"`), "small": elsewhere(`claim "1" is made from snapshot "7"`)},
		},
		"another driver's snapshot is not looked for": {
			Lists: with(two(), claims(restore(claim("1", gi), "7")), snapshots(schedule.VolumeSnapshot{Namespace: "shop", Name: "7", Ready: true, Driver: "cloud.example", Handle: "x"})), Pod: pod("1"),
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": fits(pools{"1": "vg0"})},
		},
		"a clone of a claim that waits for the same pod goes with it": {
			Lists: with(two(), claims(clone(claim("1", gi), "2"), claim("2", gi))), Pod: pod("1", "2"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0", "2": "vg0"}), "small": fits(pools{"1": "vg0", "2": "vg0"})},
		},
	}
}

// sourceless are about claims whose source does not exist, or is not ready.
func sourceless() map[string]Case {
	restored := func(unready string, options ...func(*schedule.Lists)) Case {
		return Case{Lists: with(with(two(), claims(restore(claim("1", gi), "7"))), options...), Pod: pod("1"), Unready: `claim "1" is made from snapshot "7", ` + unready}
	}
	raw := taken("7")
	raw.Ready = false
	return map[string]Case{
		"a snapshot in a cluster that knows none":     restored("which is not known: the cluster has no VolumeSnapshots"),
		"a snapshot that does not exist":              restored("which does not exist", snapshots()),
		"a snapshot that is not taken yet":            restored("which is not taken yet", snapshots(schedule.VolumeSnapshot{Namespace: "shop", Name: "7"})),
		"a snapshot that is not ready":                restored("which is not ready to use", snapshots(raw)),
		"a snapshot that no node is said to have":     restored("which is lost: Berth has no snapshot snap-", snapshots(taken("7"))),
		"a snapshot that is still copied on its node": restored("which is not ready to use", snapshots(taken("7")), kept("7", "small", "vg0", v1alpha1.SnapshotCopying)),
		"a clone of a claim that does not exist": {
			Lists: with(two(), claims(clone(claim("1", gi), "8"))), Pod: pod("1"), Unready: `claim "1" is made from claim "8", which does not exist`,
		},
		"a clone of a claim that is not bound": {
			Lists: with(two(), claims(clone(claim("1", gi), "8"), claim("8", gi))), Pod: pod("1"), Unready: `claim "1" is made from claim "8", which is not bound yet`,
		},
	}
}
