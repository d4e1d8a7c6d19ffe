package schedule

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

func TestReplicasAreTheUnionOfWishAndReport(t *testing.T) {
	wish := func(replicas ...string) func(*v1alpha1.Volume) {
		return func(v *v1alpha1.Volume) {
			v.Spec.Replicas = nil
			for _, node := range replicas {
				v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: node, Pool: "vg0"})
			}
		}
	}
	entry := func(change func(*v1alpha1.ReplicaStatus)) func(*v1alpha1.Volume) {
		return func(v *v1alpha1.Volume) { change(&v.Status.Replicas[0]) }
	}
	failed := func(reason string) func(*v1alpha1.Volume) {
		return entry(func(r *v1alpha1.ReplicaStatus) {
			r.State, r.Reason, r.Ready, r.Capacity = v1alpha1.ReplicaFailed, reason, false, nil
		})
	}
	on := func(state ledger.ReplicaState, actual, taken int64) []ledger.Replica {
		return []ledger.Replica{{Node: "n1", Pool: "vg0", State: state, Actual: actual, Taken: taken}}
	}
	tests := map[string]struct {
		change []func(*v1alpha1.Volume)
		want   []ledger.Replica
	}{
		"a carved replica": {nil, on(ledger.Ready, gi, 0)},
		"a replica that reports the room that it takes": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) { r.Allocated = new(quantity(2 * gi)) })}, on(ledger.Ready, gi, 2*gi)},
		"a replica under copy takes room and has not answered": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) {
				r.State, r.Ready, r.Allocated = v1alpha1.ReplicaCopying, false, new(quantity(2*gi))
			})}, on(ledger.Pending, gi, 2*gi)},
		"a replica without an answer": {
			[]func(*v1alpha1.Volume){func(v *v1alpha1.Volume) { v.Status.Replicas = nil }}, on(ledger.Pending, 0, 0)},
		"a replica that was asked to grow": {
			[]func(*v1alpha1.Volume){func(v *v1alpha1.Volume) { v.Spec.Capacity = quantity(2 * gi) }}, on(ledger.Pending, gi, 0)},
		"a replica that may not grow": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) { r.Reason = v1alpha1.ReasonNoSpace })}, on(ledger.Refused, gi, 0)},
		"a refused replica": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) {
				r.State, r.Reason, r.Capacity = v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace, nil
			})}, on(ledger.Refused, 0, 0)},
		"a refusal of an older wish does not count": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) {
				r.State, r.Reason, r.Capacity, r.Requested = v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace, nil, new(quantity(5*gi))
			})}, on(ledger.Pending, 0, 0)},
		"a failed replica that may come yet": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) {
				r.State, r.Reason, r.Capacity = v1alpha1.ReplicaFailed, v1alpha1.ReasonProvisionerError, nil
			})}, on(ledger.Pending, 0, 0)},
		"a gone replica that is wanted again": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) { r.State = v1alpha1.ReplicaGone })}, on(ledger.Pending, 0, 0)},
		"a replica that went with the volume": {
			[]func(*v1alpha1.Volume){entry(func(r *v1alpha1.ReplicaStatus) { r.State = v1alpha1.ReplicaGone }), func(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{} }},
			on(ledger.Gone, 0, 0)},
		"a replica that leaves the node does not grow": {
			[]func(*v1alpha1.Volume){wish(), func(v *v1alpha1.Volume) { v.Spec.Capacity = quantity(9 * gi) }}, on(ledger.Refused, gi, 0)},
		"a replica that comes and a replica that leaves": {
			[]func(*v1alpha1.Volume){wish("n2")}, append([]ledger.Replica{{Node: "n2", Pool: "vg0"}}, on(ledger.Refused, gi, 0)...)},
		"a gone replica that is not wanted": {
			[]func(*v1alpha1.Volume){wish(), entry(func(r *v1alpha1.ReplicaStatus) { r.State, r.Capacity = v1alpha1.ReplicaGone, nil })}, on(ledger.Gone, 0, 0)},
		"a replica on a lost disk": {[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonDeviceMissing)}, on(ledger.Refused, 0, 0)},
		"a replica on a partly lost disk still takes room": {
			[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonDeviceMissing), entry(func(r *v1alpha1.ReplicaStatus) { r.Capacity = new(quantity(gi)) })}, on(ledger.Refused, gi, 0)},
		"foreign data in the place of the replica": {[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonConflict)}, on(ledger.Refused, 0, 0)},
		"foreign data in the place of the replica takes room": {
			[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonConflict), entry(func(r *v1alpha1.ReplicaStatus) { r.Allocated = new(quantity(gi)) })}, on(ledger.Refused, gi, gi)},
		"an impossible replica":                    {[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonInvalid)}, on(ledger.Refused, 0, 0)},
		"a replica that the node does not support": {[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonUnsupported)}, on(ledger.Refused, 0, 0)},
		"a replica in a missing pool":              {[]func(*v1alpha1.Volume){failed(v1alpha1.ReasonPoolMissing)}, on(ledger.Pending, 0, 0)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := volumeFor("1", "n1", gi)
			for _, change := range test.change {
				change(v)
			}
			if diff := cmp.Diff(test.want, volume(v).Replicas); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAReportListsTheDataOfBerthThatHasNoVolume(t *testing.T) {
	n := storageNode("n1", 10*gi, func(n *v1alpha1.StorageNode) {
		n.Status.VolumesRevision = "77"
		n.Status.Pools[0].Foreign = quantity(gi)
		n.Status.Pools[0].Inventory = []v1alpha1.InventoryItem{
			{Volume: "pvc-x", Allocated: quantity(2 * gi), Orphan: &v1alpha1.Orphan{}},
			{Inline: &v1alpha1.InlineReference{PodUID: "p", Name: "scratch"}, Allocated: quantity(gi)},
			{Snapshot: "snap-x", Allocated: quantity(3 * gi)},
		}
	})
	want := ledger.Report{Node: "n1", Generation: 77, Ready: true, Pools: []ledger.Pool{{
		Name: "vg0", Kind: ledger.Thick, Total: 10 * gi, Foreign: gi, Unit: 4 * mi, Classes: []string{"fast"},
		Inventory: []ledger.Item{
			{Owner: ledger.Volume("pvc-x"), Taken: 2 * gi, Orphan: true}, {Owner: ledger.Inline("p", "scratch"), Taken: gi},
			{Owner: ledger.VolumeSnapshot("snap-x"), Taken: 3 * gi},
		},
	}}}
	if diff := cmp.Diff(want, report(n, "")); diff != "" {
		t.Error(diff)
	}
}

func TestWhenANodeTakesNothingNew(t *testing.T) {
	notReady := func(n *v1alpha1.StorageNode) {
		n.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}}
	}
	sick := func(h v1alpha1.PoolHealth) func(*v1alpha1.StorageNode) {
		return func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Health = h }
	}
	tests := map[string]struct {
		node   *v1alpha1.StorageNode
		away   string
		ready  bool
		health ledger.Health
	}{
		"the node is well":                {storageNode("n1", gi), "", true, ledger.Healthy},
		"the agent is silent":             {storageNode("n1", gi), "silent", false, ledger.Healthy},
		"the agent cannot list the pools": {storageNode("n1", gi, notReady), "", false, ledger.Healthy},
		"the pool is degraded":            {storageNode("n1", gi, sick(v1alpha1.PoolDegraded)), "", true, ledger.Degraded},
		"the pool is missing":             {storageNode("n1", gi, sick(v1alpha1.PoolMissing)), "", true, ledger.Missing},
		"the pool has an unknown health":  {storageNode("n1", gi, sick("Melting")), "", true, ledger.Degraded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := report(test.node, test.away)
			if r.Ready != test.ready || r.Pools[0].Health != test.health {
				t.Errorf("ready %v, health %v", r.Ready, r.Pools[0].Health)
			}
		})
	}
}

func TestPoolsAreReckonedByTheirProvisioner(t *testing.T) {
	thin := v1alpha1.Pool{
		Name: "vg0/thin", Provisioner: v1alpha1.ProvisionerLVMThin, Total: quantity(10 * gi), Foreign: quantity(gi), AllocationUnit: quantity(4 * mi),
		Filled: new(quantity(3 * gi)), MetadataFilledPercent: 7, Health: v1alpha1.PoolHealthy,
	}
	disk := v1alpha1.Pool{
		Name: "disk:eui.1", Provisioner: v1alpha1.ProvisionerDevice, Total: quantity(10 * gi), AllocationUnit: quantity(10 * gi),
		Media: v1alpha1.HDD, Health: v1alpha1.PoolHealthy,
	}
	zpool := v1alpha1.Pool{
		Name: "zfs:tank", Provisioner: v1alpha1.ProvisionerZFS, Total: quantity(10 * gi), Foreign: quantity(gi), AllocationUnit: quantity(4 * mi),
		Health: v1alpha1.PoolHealthy,
	}
	for name, test := range map[string]struct {
		pool v1alpha1.Pool
		want ledger.Pool
	}{
		"a thin pool": {thin, ledger.Pool{Name: "vg0/thin", Kind: ledger.Thin, Total: 10 * gi, Foreign: gi, Unit: 4 * mi, Filled: 3 * gi, FilledMetadata: 7}},
		"a zpool":     {zpool, ledger.Pool{Name: "zfs:tank", Kind: ledger.Thick, Total: 10 * gi, Foreign: gi, Unit: 4 * mi}},
		"a disk":      {disk, ledger.Pool{Name: "disk:eui.1", Kind: ledger.Device, Total: 10 * gi, Unit: 10 * gi, Media: "HDD"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, pool(&test.pool)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAClassSaysHowFarItsPoolsMayBeUsed(t *testing.T) {
	thin := v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVMThin, SparePercent: 5,
		LVMThin: &v1alpha1.LVMThinPools{OverprovisionPercent: 300, MaxFillPercent: 80},
	}
	disks := v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerDevice, Devices: &v1alpha1.DevicePools{Media: v1alpha1.SSD}}
	for name, test := range map[string]struct {
		spec v1alpha1.PoolClassSpec
		want ledger.Class
	}{
		"a class of thin pools": {thin, ledger.Class{SparePercent: 5, Overprovision: 300, MaxFill: 80}},
		"a class of disks":      {disks, ledger.Class{Media: "SSD"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, class(&v1alpha1.PoolClass{Spec: test.spec})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPoolOfAnUnknownProvisionerIsNotBelieved(t *testing.T) {
	n := storageNode("n1", 10*gi, func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Provisioner = "Tape" })
	l := ledger.New()
	if err := l.ObserveNode(report(n, "")); err == nil {
		t.Error("it is believed")
	}
}

func TestRevisionsAreNumbersOrNothing(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "12": 12, "x": 0, "-4": 0, "99999999999999999999": 0} {
		if got := revision(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestInlineVolumesOfAPod(t *testing.T) {
	p := podWith(scratch("100Mi"), inlineVolume("secrets", "secrets.example", nil), inlineVolume("bad", v1alpha1.LocalDriverName, map[string]string{"size": "1Gi"}))
	p.Spec.NodeName = "n1"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	want := ledger.PodObject{UID: "web", Namespace: "shop", Node: "n1", Started: true, Inline: []ledger.InlineVolume{{Name: "scratch", Class: "fast", Bytes: 100 * mi}}}
	if diff := cmp.Diff(want, pod(driver.Local(), p)); diff != "" {
		t.Error(diff)
	}
	p.Status.Phase = corev1.PodFailed
	if !pod(driver.Local(), p).Ended {
		t.Error("a failed pod has not ended")
	}
}

func TestAnInlineVolumeIsAsLargeAsItsFilesystemNeeds(t *testing.T) {
	v := inlineVolume("x", v1alpha1.LocalDriverName, map[string]string{"poolClass": "fast", "size": "1Mi", "fsType": "xfs"})
	got, _, err := inline(&v)
	if err != nil || got.Bytes != 300*mi {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnInlineVolumeNeedsAnAgentThatMakesItsFilesystem(t *testing.T) {
	plain := map[string]string{"poolClass": "fast", "size": "1Gi"}
	for name, test := range map[string]struct {
		key, value, fsType string
		feature            string
	}{
		"a filesystem that every agent makes":                 {feature: ""},
		"a dataset, as an attribute says":                     {key: "fsType", value: "zfs", feature: v1alpha1.FeatureDatasets},
		"a dataset, as the volume says":                       {fsType: "zfs", feature: v1alpha1.FeatureDatasets},
		"a filesystem that is made with options of mkfs.ext4": {key: "mkfsOptions", value: "-m 0", feature: v1alpha1.FeatureMkfsOptions},
	} {
		t.Run(name, func(t *testing.T) {
			v := inlineVolume("x", v1alpha1.LocalDriverName, maps.Clone(plain))
			if test.key != "" {
				v.CSI.VolumeAttributes[test.key] = test.value
			}
			if test.fsType != "" {
				v.CSI.FSType = &test.fsType
			}
			if _, feature, err := inline(&v); err != nil || feature != test.feature {
				t.Errorf("needs %q, %v", feature, err)
			}
		})
	}
}

func TestAClaimThatAPopulatorFillsIsNotChargedByItsNode(t *testing.T) {
	for name, test := range map[string]struct {
		source func(*corev1.PersistentVolumeClaim)
		node   string
	}{
		"a snapshot":              {from(groupSnapshot, "VolumeSnapshot", "s"), "n1"},
		"a claim":                 {from("", "PersistentVolumeClaim", "s"), "n1"},
		"a populator's kind":      {from("images.example", "Image", "s"), ""},
		"a populator's snapshots": {from("images.example", "VolumeSnapshot", "s"), ""},
	} {
		got, err := claim(driver.Local(), pvc("1", gi, selected("n1"), test.source), local())
		if err != nil || got.SelectedNode != test.node {
			t.Errorf("%s: charged on %q, want %q (%v)", name, got.SelectedNode, test.node, err)
		}
	}
}

func TestAPersistentVolumeTiesItsVolumeToItsClaim(t *testing.T) {
	got, ours := persistentVolume(driver.Local(), pvFor("1", "n1"))
	want := ledger.PVObject{Name: "pvc-" + string(uidOf("1")), Volume: "pvc-" + string(uidOf("1")), Claim: string(uidOf("1"))}
	if diff := cmp.Diff(want, got); !ours || diff != "" {
		t.Error(ours, diff)
	}
	foreign := pvFor("1", "n1")
	foreign.Spec.CSI.Driver = "other"
	if _, ours := persistentVolume(driver.Local(), foreign); ours {
		t.Error("another driver's is taken for Berth's")
	}
}

func TestSpareOfAClass(t *testing.T) {
	c := poolClass(3)
	c.Spec.SparePercent = 5
	if got := class(c); got.Spare != 3 || got.SparePercent != 5 {
		t.Errorf("got %+v", got)
	}
	c.Spec.Spare = (*resource.Quantity)(nil)
	if got := class(c); got.Spare != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAStandbysSlotYieldsIfItsVolumeSaysSo(t *testing.T) {
	owned := func(phase v1alpha1.PrimaryPhase) *v1alpha1.Ownership {
		return &v1alpha1.Ownership{Primary: v1alpha1.Primary{Node: "n2", Phase: phase}}
	}
	both := owned(v1alpha1.PrimaryReleased)
	both.Writers = []v1alpha1.Writer{{Node: "n1", Phase: v1alpha1.PrimaryActive}, {Node: "n2", Phase: v1alpha1.PrimaryPreparing}}
	first := owned(v1alpha1.PrimaryReleased)
	first.Writers = []v1alpha1.Writer{{Node: "n1", Phase: v1alpha1.PrimaryActive}, {Node: "n2", Phase: v1alpha1.PrimaryReleased}}
	for name, test := range map[string]struct {
		attachments *v1alpha1.Attachments
		ownership   *v1alpha1.Ownership
		want        []bool // of n1 and n2
	}{
		"copies do not yield":                            {nil, nil, []bool{false, false}},
		"attachments that keep their slots":              {&v1alpha1.Attachments{MaxShares: 2}, nil, []bool{false, false}},
		"attachments that yield, without an owner":       {&v1alpha1.Attachments{MaxShares: 2, Yields: true}, nil, []bool{false, true}},
		"attachments that yield, with an owner":          {&v1alpha1.Attachments{MaxShares: 2, Yields: true}, owned(v1alpha1.PrimaryActive), []bool{true, false}},
		"attachments that yield, with one that prepares": {&v1alpha1.Attachments{MaxShares: 2, Yields: true}, owned(v1alpha1.PrimaryPreparing), []bool{true, false}},
		"attachments that yield, with one that let go":   {&v1alpha1.Attachments{MaxShares: 2, Yields: true}, owned(v1alpha1.PrimaryReleased), []bool{false, true}},
		"attachments that yield, with two writers":       {&v1alpha1.Attachments{MaxShares: 2, Yields: true}, both, []bool{false, false}},
		"attachments that yield, with an older writer":   {&v1alpha1.Attachments{MaxShares: 2, Yields: true}, first, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			v := volumeFor("1", "n1", gi)
			v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: "n2", Pool: "slots"})
			v.Spec.Replication.Attachments, v.Status.Ownership = test.attachments, test.ownership
			var got []bool
			for _, r := range volume(v).Replicas {
				got = append(got, r.Yields)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
