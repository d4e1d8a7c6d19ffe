package schedule

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// foreign is a second driver, which is served in the same process.
func foreign() driver.Driver {
	d := driver.Local()
	d.Name = "other.example.org"
	return d
}

// shared is a cluster in which claim 1 and its volume of 1Gi are the local driver's, and claim 2
// and its volume of 3Gi the other one's. Claim 3 of 2Gi, which waits on the node, is the local
// driver's, and so is the inline volume of 1Gi of a pod there.
func shared(d driver.Driver) *Lists {
	theirs := volumeFor("2", "n1", 3*gi)
	theirs.Spec.Driver = foreign().Name
	theirPV := pvFor("2", "n1")
	theirPV.Spec.CSI.Driver = foreign().Name
	scratched := podWith(scratch("1Gi"))
	scratched.Spec.NodeName = "n1"
	return &Lists{
		Driver:         d,
		PoolClasses:    []v1alpha1.PoolClass{*poolClass(0)},
		StorageNodes:   []v1alpha1.StorageNode{*storageNode("n1", 10*gi)},
		StorageClasses: []storagev1.StorageClass{*local(), *storageClass("theirs", foreign().Name, storagev1.VolumeBindingWaitForFirstConsumer)},
		Volumes:        []v1alpha1.Volume{*volumeFor("1", "n1", gi), *theirs},
		Claims: []corev1.PersistentVolumeClaim{
			*pvc("1", gi, boundTo(pvFor("1", "n1").Name)), *pvc("2", 3*gi, ofClass("theirs"), boundTo(theirPV.Name)), *pvc("3", 2*gi, selected("n1")),
		},
		PersistentVolumes: []corev1.PersistentVolume{*pvFor("1", "n1"), *theirPV},
		Pods:              []corev1.Pod{*scratched},
		VolumeSnapshots:   []VolumeSnapshot{{Namespace: "shop", Name: "photo", Ready: true, Driver: foreign().Name, Handle: "snap-" + "00000000-0000-0000-0000-000000000001"}},
	}
}

// Another driver's ledger would else promise the room of these volumes once more.
func TestABookCountsTheVolumesOfAllDriversAndTheClaimsAndPodsOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		driver driver.Driver
		free   int64
	}{
		"the local driver": {driver.Local(), 3 * gi}, // 1Gi, 3Gi, 2Gi and 1Gi of 10Gi are taken
		"the other one":    {foreign(), 6 * gi},
	} {
		if got := shared(test.driver).Book(&beats{}).Room("n1", "fast").Largest; got != test.free {
			t.Errorf("%s: %d MiB are free, want %d", name, got/mi, test.free/mi)
		}
	}
}

func TestAVolumeOfAnotherDriverIsChargedUntilItIsGone(t *testing.T) {
	f := newFed(t)
	theirs := volumeFor("1", "n1", 3*gi)
	theirs.Spec.Driver = foreign().Name
	theirs.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""} // a reservation counts as well
	f.observeVolume(theirs)
	f.wantFree(7 * gi)
	f.forgetVolume(theirs)
	f.wantFree(10 * gi)
}

func TestListsFindNoObjectOfAnotherDriver(t *testing.T) {
	for name, test := range map[string]struct {
		driver driver.Driver
		found  bool
	}{
		"the local driver": {driver.Local(), false},
		"the other one":    {foreign(), true},
	} {
		lists := shared(test.driver)
		snapshot := v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{Driver: foreign().Name}}
		snapshot.Name = "snap-theirs"
		lists.Snapshots = []v1alpha1.Snapshot{snapshot}
		v, err := lists.Volume(t.Context(), lists.Volumes[1].Name)
		s, snapErr := lists.Snapshot(t.Context(), snapshot.Name)
		if err != nil || snapErr != nil || (v != nil) != test.found || (s != nil) != test.found {
			t.Errorf("%s: found %v and %v; %v, %v", name, v, s, err, snapErr)
		}
	}
}

func TestAReaderFindsOnlyTheVolumesOfItsDriver(t *testing.T) {
	pod := podWith(claimVolume("1"), claimVolume("2"), claimVolume("3"), scratch("1Gi"))
	for name, test := range map[string]struct {
		driver          driver.Driver
		wanted, holders int
	}{
		"the local driver": {driver.Local(), 2, 1},
		"the other one":    {foreign(), 0, 1},
	} {
		got, err := Reader{Driver: test.driver, Objects: shared(test.driver)}.Read(t.Context(), pod)
		if err != nil || len(got.Wanted) != test.wanted || len(got.Holders) != test.holders || got.Unready != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestASnapshotOfAnotherDriverIsNotLookedFor(t *testing.T) {
	group := groupSnapshot
	restored := pvc("3", gi, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: kindSnapshot, Name: "photo"}
	})
	for name, test := range map[string]struct {
		driver driver.Driver
		class  string
		looks  bool
	}{
		"the local driver":                  {driver.Local(), "local", false},
		"the driver that took the snapshot": {foreign(), "theirs", true},
	} {
		lists := shared(test.driver)
		restored.Spec.StorageClassName = &test.class
		lists.Claims[2] = *restored
		got, err := Reader{Driver: test.driver, Objects: lists}.Read(t.Context(), podWith(claimVolume("3")))
		if err != nil || got == nil || (len(got.Sources) > 0) != test.looks {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A pod may use a shared disk beside a local volume. The label that moves says where the disk can be used, and
// the local driver neither reserves anything for it nor refuses a node because of it.
func TestAVolumeOfASharedDiskIsLeftToTheLabelThatMoves(t *testing.T) {
	disk, lists := driver.Disk(), shared(driver.Local())
	pv, v := &lists.PersistentVolumes[1], &lists.Volumes[1]
	pv.Spec.CSI.Driver, pv.Spec.NodeAffinity = disk.Name, disk.Affinity(v.Name)
	v.Spec.Driver, v.Spec.Replicas, v.Status.Replicas = disk.Name, nil, nil
	v.Spec.Replication = v1alpha1.Replication{Factor: 2, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{MaxShares: 2}}
	v.Status.Ownership = &v1alpha1.Ownership{
		Primary:  v1alpha1.Primary{Node: "n2", Phase: v1alpha1.PrimaryActive},
		Replicas: []v1alpha1.OwnedReplica{{Node: "n1", State: v1alpha1.OwnedReady}, {Node: "n2", State: v1alpha1.OwnedReady}},
	}
	lists.StorageClasses[1].Provisioner = disk.Name

	got, err := Reader{Driver: driver.Local(), Objects: lists}.Read(t.Context(), podWith(claimVolume("2")))
	if err != nil || got != nil {
		t.Errorf("a pod with nothing else wants %+v, %v", got, err)
	}
	got, err = Reader{Driver: driver.Local(), Objects: lists}.Read(t.Context(), podWith(claimVolume("2"), claimVolume("3")))
	if err != nil || len(got.Wanted) != 1 || len(got.Holders) != 0 || got.Unready != "" {
		t.Errorf("beside a local claim it wants %+v, %v", got, err)
	}
	if free := lists.Book(&beats{}).Room("n1", "fast").Largest; free != 6*gi { // 1Gi, 2Gi and 1Gi of 10Gi are taken
		t.Errorf("%d MiB are free: a pool is charged for a disk", free/mi)
	}
	if _, ours := persistentVolume(driver.Local(), pv); ours {
		t.Error("the ledger of local volumes counts its PersistentVolume")
	}
}
