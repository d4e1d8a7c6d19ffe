package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	snapshotForm      = "metadata.name must be snap-<uid>, or snap- and 32 characters of base32"
	snapshotImmutable = "volume, volumeMode and poolClass are immutable"
	snapshotIncludes  = "a snapshot that was taken reports when, and its size"
	takenOnce         = "a snapshot is taken once"
)

// step is one step of a snapshot's life, or one attempt at it.
type step func(*v1alpha1.Snapshot)

// newSnapshot is wanted on n1 and n2 and is named after its test.
func newSnapshot(t *testing.T) *v1alpha1.Snapshot {
	return &v1alpha1.Snapshot{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SnapshotName(t.Name())},
		Spec: v1alpha1.SnapshotSpec{
			Volume: v1alpha1.VolumeName(t.Name()), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast",
			Replicas: []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg"}, {Node: "n2", Pool: "vg"}},
		},
	}
}

// says makes a node report a state, as one that has or had the snapshot.
func says(node string, state v1alpha1.SnapshotState) step {
	return func(s *v1alpha1.Snapshot) {
		taken, size := metav1.NewTime(time.Unix(1, 0)), resource.MustParse("10Gi")
		withdrawn(node)(s)
		s.Status.Replicas = append(s.Status.Replicas, v1alpha1.SnapshotReplica{
			Node: node, Pool: "vg", State: state, Taken: &taken, RestoreSize: &size, Allocated: &size, Reason: "Tested", Message: "all is well",
		})
	}
}

// edited changes a node's report.
func edited(node string, edit func(*v1alpha1.SnapshotReplica)) step {
	return func(s *v1alpha1.Snapshot) { edit(s.Entry(node)) }
}

func withdrawn(node string) step {
	return func(s *v1alpha1.Snapshot) {
		s.Status.Replicas = slices.DeleteFunc(s.Status.Replicas, func(r v1alpha1.SnapshotReplica) bool { return r.Node == node })
	}
}

// begun creates a snapshot and takes its status through the steps, one write each.
func begun(t *testing.T, c client.Client, steps ...step) *v1alpha1.Snapshot {
	t.Helper()
	s := newSnapshot(t)
	if err := c.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for i, next := range steps {
		next(s)
		if err := c.Status().Update(t.Context(), s); err != nil {
			t.Fatalf("step %d before the request: %v", i+1, err)
		}
	}
	return s
}

// snapshotSpecs are snapshots at their creation.
var snapshotSpecs = map[string]struct {
	change  step
	refusal string
}{
	"a snapshot":                           {change: func(*v1alpha1.Snapshot) {}},
	"a snapshot named by a UID":            {change: func(s *v1alpha1.Snapshot) { s.Name = "snap-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f" }},
	"a snapshot that was adopted":          {change: func(s *v1alpha1.Snapshot) { s.Spec.Adopted = true }},
	"a snapshot that has no place yet":     {change: func(s *v1alpha1.Snapshot) { s.Spec.Replicas = nil }},
	"a name that the csi-snapshotter made": {change: func(s *v1alpha1.Snapshot) { s.Name = "snapshot-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f" }, refusal: snapshotForm},
	"a snapshot without a volume":          {change: func(s *v1alpha1.Snapshot) { s.Spec.Volume = "" }, refusal: "spec.volume"},
	"a snapshot of a foreign volume":       {change: func(s *v1alpha1.Snapshot) { s.Spec.Volume = "root" }, refusal: "spec.volume"},
	"a snapshot without a class":           {change: func(s *v1alpha1.Snapshot) { s.Spec.PoolClass = "" }, refusal: "spec.poolClass"},
	"a snapshot of a block device":         {change: func(s *v1alpha1.Snapshot) { s.Spec.VolumeMode, s.Spec.FSType = v1alpha1.Block, "" }},
	"a snapshot without a mode":            {change: func(s *v1alpha1.Snapshot) { s.Spec.VolumeMode = "" }, refusal: "spec.volumeMode"},
	"a filesystem without a type":          {change: func(s *v1alpha1.Snapshot) { s.Spec.FSType = "" }, refusal: fsTypeNeeded},
	"a block device with a filesystem":     {change: func(s *v1alpha1.Snapshot) { s.Spec.VolumeMode = v1alpha1.Block }, refusal: fsTypeNeeded},
}

func TestASnapshotIsCreatedOnlyInAFormThatCanBeServed(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range snapshotSpecs {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(t)
			tc.change(s)
			expect(t, env.Client.Create(t.Context(), s), tc.refusal)
		})
	}
}

func TestASnapshotStaysOneOfItsVolume(t *testing.T) {
	env := apitest.Start(t)
	s := begun(t, env.Client)
	s.Spec.Replicas = s.Spec.Replicas[:1]
	expect(t, env.Client.Update(t.Context(), s), "")
	for name, tc := range snapshotChanges {
		t.Run(name, func(t *testing.T) {
			changed := s.DeepCopy()
			tc.change(changed)
			expect(t, env.Client.Update(t.Context(), changed), tc.refusal)
		})
	}
}

// snapshotChanges are changes of a snapshot's spec.
var snapshotChanges = map[string]struct {
	change  step
	refusal string
}{
	"the volume changes":                         {func(s *v1alpha1.Snapshot) { s.Spec.Volume = v1alpha1.VolumeName("another") }, snapshotImmutable},
	"the class changes":                          {func(s *v1alpha1.Snapshot) { s.Spec.PoolClass = "slow" }, snapshotImmutable},
	"the driver changes":                         {func(s *v1alpha1.Snapshot) { s.Spec.Driver = "other.example.org" }, driverImmutable},
	"the mode changes":                           {func(s *v1alpha1.Snapshot) { s.Spec.VolumeMode, s.Spec.FSType = v1alpha1.Block, "" }, snapshotImmutable},
	"the filesystem changes":                     {func(s *v1alpha1.Snapshot) { s.Spec.FSType = v1alpha1.XFS }, fsTypeImmutable},
	"an administrator adopts the snapshot later": {func(s *v1alpha1.Snapshot) { s.Spec.Adopted = true }, adoptedImmutable},
}

// snapshotCases are requests of the agent of n1.
var snapshotCases = map[string]struct {
	before  []step
	change  step
	refusal string
}{
	"takes the snapshot":                             {change: says("n1", v1alpha1.SnapshotReady)},
	"takes the snapshot beside another node":         {before: []step{says("n2", v1alpha1.SnapshotReady)}, change: says("n1", v1alpha1.SnapshotCopying)},
	"finishes copying the snapshot":                  {before: []step{says("n1", v1alpha1.SnapshotCopying)}, change: says("n1", v1alpha1.SnapshotReady)},
	"fails":                                          {change: failing("n1")},
	"loses the snapshot":                             {before: []step{says("n1", v1alpha1.SnapshotReady)}, change: says("n1", v1alpha1.SnapshotFailed)},
	"removes the snapshot":                           {before: []step{says("n1", v1alpha1.SnapshotReady)}, change: says("n1", v1alpha1.SnapshotGone)},
	"drops the own entry after the snapshot is gone": {before: []step{says("n1", v1alpha1.SnapshotGone)}, change: withdrawn("n1")},
	"drops the own entry of an existing snapshot":    {before: []step{says("n1", v1alpha1.SnapshotReady)}, change: withdrawn("n1"), refusal: entryLeaves},
	"reports a snapshot without a time":              {change: unmarked(func(r *v1alpha1.SnapshotReplica) { r.Taken = nil }), refusal: snapshotIncludes},
	"reports a snapshot without a size":              {change: unmarked(func(r *v1alpha1.SnapshotReplica) { r.RestoreSize = nil }), refusal: snapshotIncludes},
	"changes the time of the snapshot": {before: []step{says("n1", v1alpha1.SnapshotReady)}, refusal: takenOnce,
		change: edited("n1", func(r *v1alpha1.SnapshotReplica) { r.Taken = &metav1.Time{Time: time.Unix(2, 0)} })},
	"changes the size of the snapshot": {before: []step{says("n1", v1alpha1.SnapshotReady)}, refusal: takenOnce,
		change: edited("n1", func(r *v1alpha1.SnapshotReplica) { r.RestoreSize = new(resource.MustParse("11Gi")) })},
	"reports for another node": {before: []step{says("n1", v1alpha1.SnapshotReady)}, change: says("n2", v1alpha1.SnapshotReady), refusal: ownSnapshot},
	"changes the entry of another node": {before: []step{says("n2", v1alpha1.SnapshotReady)}, refusal: ownSnapshot,
		change: edited("n2", func(r *v1alpha1.SnapshotReplica) { r.Message = "mine" })},
	"drops the entry of another node": {before: []step{says("n2", v1alpha1.SnapshotGone)}, change: withdrawn("n2"), refusal: ownSnapshot},
}

// failing makes a node say that it could not take it.
func failing(node string) step {
	return func(s *v1alpha1.Snapshot) {
		s.Status.Replicas = append(s.Status.Replicas, v1alpha1.SnapshotReplica{Node: node, State: v1alpha1.SnapshotFailed, Reason: "NoSpace"})
	}
}

// unmarked is a report of n1 that lacks something.
func unmarked(edit func(*v1alpha1.SnapshotReplica)) step {
	return func(s *v1alpha1.Snapshot) {
		says("n1", v1alpha1.SnapshotReady)(s)
		edited("n1", edit)(s)
	}
}

func TestAnAgentWritesOnlyItsOwnPartOfASnapshot(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	for name, tc := range snapshotCases {
		t.Run(name, func(t *testing.T) {
			s := begun(t, env.Client, tc.before...)
			before := s.DeepCopy()
			tc.change(s)
			expect(t, agent.Status().Update(t.Context(), s), tc.refusal)
			if tc.refusal == "" {
				return
			}
			got := &v1alpha1.Snapshot{}
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(s), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.Status, got.Status); diff != "" {
				t.Errorf("a refused request changed the status (-before +after):\n%s", diff)
			}
		})
	}
}

func TestEveryFieldOfASnapshotsStatusHasOneWriter(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	// In state Failed the fields of a taken snapshot may be set or left out.
	stored := stored(t, env, begun(t, env.Client, says("n1", v1alpha1.SnapshotFailed), says("n2", v1alpha1.SnapshotFailed)))
	for _, field := range statusLeaves(t, "snapshots", stored.Object) {
		t.Run(field.String(), func(t *testing.T) {
			err := tries(t.Context(), agent, stored, field)
			switch own := field.within(0); {
			case field.path == "replicas[].node":
				expect(t, err, entryLeaves)
			case field.path == "replicas[].taken", field.path == "replicas[].restoreSize":
				expect(t, err, takenOnce)
			case own:
				expect(t, err, "")
			default:
				expect(t, err, ownSnapshot)
			}
		})
	}
}
