package zpool

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

// Whatever quotas and reservations a zpool reports: a dataset is promised neither more than
// it may hold nor more than there is room for, and the figures of its pool add up.
func TestTheSizesOfDatasetsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := func(name string) int64 { return rapid.Int64Range(0, 64).Draw(t, name) * Unit }
		rows := []Row{{name: "tank", kind: kindFilesystem, available: 4 << 30}, {name: "tank/" + liveArea, kind: kindFilesystem}}
		want := map[string]int64{}
		for n := range rapid.IntRange(0, 5).Draw(t, "datasets") {
			id := fmt.Sprint("pvc-", n)
			r := Row{
				name: LiveName("tank", id), kind: kindFilesystem, volume: id, refquota: bytes("quota"), refreservation: bytes("reservation"),
				referenced: rapid.Int64Range(24<<10, 8<<20).Draw(t, "referenced"),
			}
			r.used = max(r.refreservation, r.referenced)
			rows[0].used += r.used
			rows[1].used += r.used
			rows, want[id] = append(rows, r), datasetSize(r)
			for _, bound := range []int64{r.refquota, r.refreservation} {
				if bound > 0 && want[id] > bound {
					t.Fatalf("%d bytes of quota %d and reservation %d", want[id], r.refquota, r.refreservation)
				}
			}
		}
		z, err := New(rows)
		if err != nil {
			t.Fatal(err)
		}
		p := z.figures("tank")
		rest := p.Total - p.Foreign
		for id, size := range want {
			_, d := z.Volume(id)
			if d == nil || d.size != size || d.ahead() != (d.quota > d.size && d.reserved) {
				t.Fatalf("%s is %+v, want %d bytes", id, d, size)
			}
			rest -= size
		}
		if rest != p.Free {
			t.Fatalf("of %d, %d are foreign and %d free, and the datasets take %v", p.Total, p.Foreign, p.Free, want)
		}
	})
}

func TestASnapshotsSizeIsNeverTakenFromAnImpossibleRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		row  Row
		want int64
	}{
		"the size of a zvol":                            {Row{volsize: 8 * Unit, size: "-"}, 8 * Unit},
		"the recorded size of a dataset":                {Row{size: fmt.Sprint(8 * Unit), referenced: Unit}, 8 * Unit},
		"the referenced bytes of an unrecorded dataset": {Row{size: "-", referenced: Unit + 1}, 2 * Unit},
		"a size in words":                               {Row{size: "large", referenced: 1}, Unit},
		"a size of zero":                                {Row{size: "0", referenced: 1}, Unit},
		"a size beyond all limits":                      {Row{size: fmt.Sprint(int64(provision.MaxSize) + 1), referenced: 1}, Unit},
		"a negative size":                               {Row{size: "-4194304", referenced: 1}, Unit},
	} {
		if got := sizeOfSnapshot(tc.row); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
