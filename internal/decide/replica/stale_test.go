package replica

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestStale(t *testing.T) {
	pool := func(free int64, records ...*provision.Volume) []provision.Pool {
		p := provision.Pool{PoolRef: vg0, Total: 10 * gib, Free: free, Unit: 1 << 20}
		for _, r := range records {
			p.Volumes = append(p.Volumes, *r)
		}
		return []provision.Pool{p}
	}
	refused := volume(saying(failed(v1alpha1.ReasonNoSpace)))
	short := ready("1Gi", "3Gi")
	short.Reason = v1alpha1.ReasonNoSpace
	tests := map[string]struct {
		volume    *v1alpha1.Volume
		pools     []provision.Pool
		recovered bool
		want      []string
	}{
		"the sweep ignores the inline volume of a pod":         {volume: volume(saying(ready("1Gi", "1Gi"))), pools: pool(gib, carved(), carved(inline))},
		"a finished volume is left alone":                      {volume: volume(saying(ready("1Gi", "1Gi"))), pools: pool(gib, carved())},
		"a lost device is noticed":                             {volume: volume(saying(ready("1Gi", "1Gi"))), pools: pool(gib), want: []string{id}},
		"a refused volume waits while there is no room":        {volume: refused, pools: pool(gib - 1<<20)},
		"a refused volume is tried when there is room":         {volume: refused, pools: pool(gib), want: []string{id}},
		"a refused expansion waits for the difference":         {volume: volume(of("3Gi"), saying(short)), pools: pool(2*gib-1<<20, carved())},
		"a refused expansion is tried when the expansion fits": {volume: volume(of("3Gi"), saying(short)), pools: pool(2*gib, carved()), want: []string{id}},
		"a pool that came back is tried":                       {volume: volume(saying(failed(v1alpha1.ReasonPoolMissing))), pools: pool(gib), want: []string{id}},
		"a pool that is still missing is waited for":           {volume: volume(saying(failed(v1alpha1.ReasonPoolMissing)))},
		"a volume that is being carved is left alone":          {volume: volume(), pools: pool(gib)},
		"a volume that is being expanded is left alone":        {volume: volume(of("2Gi"), saying(ready("1Gi", "1Gi"))), pools: pool(9*gib, carved())},
		"a volume that is being deleted is left alone":         {volume: volume(deleting, saying(ready("1Gi", "1Gi"))), pools: pool(gib)},
		"a failed volume waits for the next try":               {volume: volume(saying(failed(v1alpha1.ReasonProvisionerError))), pools: pool(9 * gib)},
		"a failed volume is tried after an outage":             {volume: volume(saying(failed(v1alpha1.ReasonProvisionerError))), pools: pool(9 * gib), recovered: true, want: []string{id}},
		"a deletion is tried after an outage":                  {volume: volume(deleting, saying(ready("1Gi", "1Gi"))), pools: pool(9*gib, carved()), recovered: true, want: []string{id}},
		"a finished volume needs nothing after an outage":      {volume: volume(saying(ready("1Gi", "1Gi"))), pools: pool(9*gib, carved()), recovered: true},
		"a copy that is finished is looked at":                 {volume: volume(restored, saying(copyUnderWay())), pools: pool(9*gib, carved(fromSnapshot)), want: []string{id}},
		"a copy under way is left alone":                       {volume: volume(restored, saying(copyUnderWay())), pools: pool(9*gib, carved(fromSnapshot, copying))},
		"data without a volume is looked at":                   {volume: volume(saying(gone()), on("n2")), pools: pool(gib, carved(func(r *provision.Volume) { r.ID = "vol-x" })), want: []string{"vol-x"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Kind.Stale([]*v1alpha1.Volume{tc.volume}, here, tc.pools, tc.recovered)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stale volumes: %s", diff)
			}
		})
	}
}

func TestVolumesThatDeserveALookAreInOrder(t *testing.T) {
	pool := provision.Pool{PoolRef: vg0, Volumes: []provision.Volume{{ID: "c"}, {ID: "a"}, {ID: "d"}, {ID: "b"}}}
	if got := Kind.Stale(nil, here, []provision.Pool{pool}, false); !slices.IsSorted(got) || len(got) != 4 {
		t.Errorf("got %v", got)
	}
}

func TestRoomInAnotherPoolIsNoReasonToTryAgain(t *testing.T) {
	v := volume(on(here), saying(failed(v1alpha1.ReasonNoSpace)))
	full := provision.Pool{PoolRef: vg0, Total: gib, Unit: 1}
	roomy := func(name string) provision.Pool {
		return provision.Pool{PoolRef: provision.PoolRef{Type: vg0.Type, Name: name}, Total: 100 * gib, Free: 100 * gib, Unit: 1}
	}
	if got := Kind.Stale([]*v1alpha1.Volume{v}, here, []provision.Pool{full, roomy("vg1")}, false); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got := Kind.Stale([]*v1alpha1.Volume{v}, here, []provision.Pool{roomy(vg0.Name)}, false); len(got) != 1 {
		t.Errorf("got %v where there is room", got)
	}
}
