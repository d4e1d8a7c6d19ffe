package health

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const gib = int64(1 << 30)

var (
	vg0  = provision.PoolRef{Type: string(v1alpha1.ProvisionerLVM), Name: "vg0"}
	thin = provision.PoolRef{Type: string(v1alpha1.ProvisionerLVMThin), Name: "vg0/thin"}
)

// facts are those of a sound volume in a pool.
func facts(ref provision.PoolRef, changes ...func(*Facts)) Facts {
	f := Facts{Record: &provision.Volume{ID: id, Pool: ref}, Pool: provision.Pool{PoolRef: ref, Total: 100 * gib}, Read: true, Wanted: ref.Name}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func without(f *Facts) { f.Record = nil }
func unread(f *Facts)  { f.Read = false }

func fill(data int64, metadata int) func(*Facts) {
	return func(f *Facts) { f.Pool.Fill = provision.Fill{Data: data, Metadata: metadata} }
}

func TestAVolumeIsJudgedByWhatIsKnown(t *testing.T) {
	damaged := func(f *Facts) { f.Record.Problem = "its device is gone" }
	for name, tc := range map[string]struct {
		facts Facts
		want  []string
	}{
		"a sound volume":                              {facts(vg0), nil},
		"a volume whose object is not known":          {facts(vg0, func(f *Facts) { f.Wanted = "" }), nil},
		"a pool that was read and lacks the volume":   {facts(vg0, without), []string{"DataLoss DeviceMissing"}},
		"a pool that was not read":                    {facts(vg0, without, unread), []string{"Inaccessible PoolMissing"}},
		"a volume with a problem":                     {facts(vg0, damaged), []string{"Inaccessible DeviceMissing"}},
		"a copy that is not whole":                    {facts(vg0, func(f *Facts) { f.Record.Copying = true }), []string{"Inaccessible Copying"}},
		"a filesystem that does not answer":           {facts(vg0, func(f *Facts) { f.Unanswered = errors.New("slow") }), []string{"Inaccessible NoAnswer"}},
		"a volume of that name in another pool":       {facts(vg0, func(f *Facts) { f.Wanted = "vg1" }), []string{"Inaccessible Conflict"}},
		"a pool with a problem":                       {facts(vg0, func(f *Facts) { f.Pool.Problem = "a disk is missing" }), []string{"Degraded PoolDegraded"}},
		"a problem of both":                           {facts(vg0, damaged, func(f *Facts) { f.Pool.Problem = "a disk is missing" }), []string{"Inaccessible DeviceMissing", "Degraded PoolDegraded"}},
		"a thin pool with room":                       {facts(thin, fill(80*gib-1, 79)), nil},
		"a thin pool that fills up":                   {facts(thin, fill(80*gib, 0)), []string{"Degraded ThinPoolFilling"}},
		"a thin pool whose metadata is nearly full":   {facts(thin, fill(0, 90)), []string{"Degraded ThinPoolNearlyFull"}},
		"a pool that allocates what it promises":      {facts(vg0, fill(100*gib, 100)), nil},
		"a thin pool that says nothing of its size":   {facts(thin, fill(gib, 100), func(f *Facts) { f.Pool.Total = 0 }), nil},
		"a volume that is gone from a full thin pool": {facts(thin, without, fill(100*gib, 0)), []string{"DataLoss DeviceMissing"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Judge(tc.facts) {
				got = append(got, string(c.Status)+" "+c.Reason)
				if c.Message == "" {
					t.Errorf("%+v has no message", c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEachPercentOfAThinPoolIsNoNewCondition(t *testing.T) {
	if diff := cmp.Diff(Judge(facts(thin, fill(81*gib, 0))), Judge(facts(thin, fill(89*gib, 0)))); diff != "" {
		t.Error(diff)
	}
}
