package snapshot

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestStale(t *testing.T) {
	pool := func(free int64, records ...*provision.Snapshot) []provision.Pool {
		p := provision.Pool{PoolRef: vg0, Total: 10 * gib, Free: free, Unit: 1 << 20, Volumes: []provision.Volume{{ID: volume, Pool: vg0, Size: gib}}}
		for _, r := range records {
			p.Snapshots = append(p.Snapshots, *r)
		}
		return []provision.Pool{p}
	}
	tests := map[string]struct {
		snapshot  *v1alpha1.Snapshot
		pools     []provision.Pool
		recovered bool
		want      []string
	}{
		"a finished snapshot is left alone":                           {snapshot: snapshot(saying(ready())), pools: pool(gib, record())},
		"a lost snapshot is noticed":                                  {snapshot: snapshot(saying(ready())), pools: pool(gib), want: []string{id}},
		"an adopted snapshot that comes back is noticed":              {snapshot: snapshot(adopted, saying(failed("DeviceMissing"))), pools: pool(gib, record()), want: []string{id}},
		"the end of copying is noticed":                               {snapshot: snapshot(saying(took("Copying", "Copying"))), pools: pool(gib, record()), want: []string{id}},
		"a snapshot refused for room waits while the pool is full":    {snapshot: snapshot(saying(failed("NoSpace"))), pools: pool(gib - 1<<20)},
		"a snapshot refused for room is tried when the pool has room": {snapshot: snapshot(saying(failed("NoSpace"))), pools: pool(gib), want: []string{id}},
		"a snapshot whose volume came back is tried":                  {snapshot: snapshot(saying(failed("SourceMissing"))), pools: pool(0), want: []string{id}},
		"a snapshot whose pool is missing waits":                      {snapshot: snapshot(saying(failed("PoolMissing")))},
		"a snapshot refused for good is left alone":                   {snapshot: snapshot(saying(failed("Unsupported"))), pools: pool(9 * gib)},
		"an unfinished snapshot is left alone":                        {snapshot: snapshot(), pools: pool(9 * gib)},
		"a deleted snapshot is left alone":                            {snapshot: snapshot(deleting, saying(ready())), pools: pool(gib, record())},
		"a deletion is tried after an outage":                         {snapshot: snapshot(deleting, saying(ready())), pools: pool(gib, record()), recovered: true, want: []string{id}},
		"a failed snapshot is tried after an outage":                  {snapshot: snapshot(saying(failed("ProvisionerError"))), pools: pool(gib), recovered: true, want: []string{id}},
		"a snapshot without an object is looked at":                   {snapshot: snapshot(saying(ready())), pools: pool(gib, record(), record(func(r *provision.Snapshot) { r.ID = "snap-x" })), want: []string{"snap-x"}},
		"an invalid snapshot stays final after an outage":             {snapshot: snapshot(saying(failed("Invalid"))), pools: pool(gib), recovered: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Kind.Stale([]*v1alpha1.Snapshot{tc.snapshot}, here, tc.pools, tc.recovered)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stale snapshots: %s", diff)
			}
		})
	}
}

func TestSnapshotsThatDeserveALookAreInOrder(t *testing.T) {
	pool := provision.Pool{PoolRef: vg0, Snapshots: []provision.Snapshot{{ID: "c"}, {ID: "a"}, {ID: "d"}, {ID: "b"}}}
	if got := Kind.Stale(nil, here, []provision.Pool{pool}, false); !slices.IsSorted(got) || len(got) != 4 {
		t.Errorf("got %v", got)
	}
}

func TestASnapshotIsTriedAgainWhereItsVolumeIsAlone(t *testing.T) {
	roomy := provision.Pool{PoolRef: vg0}
	with := func(p provision.Pool, ids ...string) provision.Pool {
		for _, id := range ids {
			p.Volumes = append(p.Volumes, provision.Volume{ID: id, Size: gib})
		}
		return p
	}
	other := roomy
	other.PoolRef.Name = "vg1"
	for name, test := range map[string]struct {
		pools []provision.Pool
		stale bool
	}{
		"the volume is back":                       {[]provision.Pool{with(roomy, volume)}, true},
		"the volume is back beside another volume": {[]provision.Pool{with(roomy, "pvc-2", volume)}, true},
		"the volume is not in the pool":            {[]provision.Pool{with(roomy, "pvc-2")}, false},
		"the volume is in another pool":            {[]provision.Pool{with(other, volume), with(roomy, "pvc-2")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(saying(failed(v1alpha1.ReasonSourceMissing)))
			if got := Kind.Stale([]*v1alpha1.Snapshot{s}, here, test.pools, false); slices.Contains(got, id) != test.stale {
				t.Errorf("got %v", got)
			}
		})
	}
}
