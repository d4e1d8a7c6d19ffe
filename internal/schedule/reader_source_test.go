package schedule

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/usecase/volumes"
)

// from makes an object the source of a claim; "" is the group of claims.
func from(group, kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: kind, Name: name}
		if group != "" {
			c.Spec.DataSourceRef.APIGroup = &group
		}
	}
}

// inOlderField moves the source into the field that older clients write.
func inOlderField(change func(*corev1.PersistentVolumeClaim)) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		change(c)
		ref := c.Spec.DataSourceRef
		c.Spec.DataSource, c.Spec.DataSourceRef = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}, nil
	}
}

func inNamespace(namespace string, change func(*corev1.PersistentVolumeClaim)) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		change(c)
		c.Spec.DataSourceRef.Namespace = &namespace
	}
}

// stocked is a shop with a claim "8" on node n1, one "6" that is another driver's,
// a snapshot "7" on node n2 and one "5" that is another driver's.
func stocked(c *corev1.PersistentVolumeClaim) *objects {
	pv, theirs := pvFor("8", "n1"), &corev1.PersistentVolume{}
	theirs.Name = "theirs"
	o := shop(c, pvc("8", gi, boundTo(pv.Name)), pvc("6", gi, boundTo(theirs.Name))).with(pv, volumeFor("8", "n1", gi)).with(theirs, nil)
	o.taken("7", "n2")
	o.snapshots["shop/5"] = &VolumeSnapshot{Driver: "cloud.example", Ready: true}
	return o
}

func TestAClaimThatIsToHaveDataGetsNoBlankVolume(t *testing.T) {
	onN1, onN2 := []ledger.Place{{Node: "n1", Pool: "vg0"}}, []ledger.Place{{Node: "n2", Pool: "vg0"}}
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		beside []ledger.Place
		blank  bool
	}{
		"the claim begins blank":                                {change: func(*corev1.PersistentVolumeClaim) {}, blank: true},
		"a populator fills the claim":                           {change: from("images.example", "Image", "x")},
		"a populator fills the claim from a claim-like kind":    {change: from("other.example", "PersistentVolumeClaim", "8")},
		"the claim restores a snapshot":                         {change: from(groupSnapshot, "VolumeSnapshot", "7"), beside: onN2},
		"the claim restores a snapshot, in the older field":     {change: inOlderField(from(groupSnapshot, "VolumeSnapshot", "7")), beside: onN2},
		"the claim restores a snapshot of another driver":       {change: from(groupSnapshot, "VolumeSnapshot", "5")},
		"the claim restores a snapshot of another namespace":    {change: inNamespace("other", from(groupSnapshot, "VolumeSnapshot", "7"))},
		"the claim clones a claim":                              {change: from("", "PersistentVolumeClaim", "8"), beside: onN1},
		"the claim clones a claim, in the older field":          {change: inOlderField(from("", "PersistentVolumeClaim", "8")), beside: onN1},
		"the claim clones a claim of another driver":            {change: from("", "PersistentVolumeClaim", "6")},
		"the claim clones a claim of another namespace":         {change: inNamespace("other", from("", "PersistentVolumeClaim", "8"))},
		"the claim clones a claim and names the same namespace": {change: inNamespace("shop", from("", "PersistentVolumeClaim", "8")), beside: onN1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := pvc("1", gi, test.change)
			got := read(t, stocked(c), podWith(claimVolume("1")))
			if len(got.Wanted) != 1 || got.Unready != "" {
				t.Fatalf("got %+v", got)
			}
			w := got.Wanted[0]
			if w.Populated == test.blank || cmp.Equal(w.Request, volumes.Request{}, cmpopts.EquateEmpty()) == test.blank {
				t.Errorf("it is marked %t, with the request %+v", w.Populated, w.Request)
			}
			want := ledger.Demand{Owner: ledger.Claim(string(c.UID)), Class: "fast", Bytes: gi, Beside: test.beside}
			if diff := cmp.Diff(want, w.Demand); diff != "" {
				t.Error(diff)
			}
			if len(got.Sources) != len(test.beside) || (w.Source == nil) != (test.beside == nil) {
				t.Errorf("the sources are %+v", got.Sources)
			}
		})
	}
}

func TestAPodWaitsForTheSourceOfItsClaim(t *testing.T) {
	ofClaim := func(unready string) string { return `claim "1" is made from claim "8", ` + unready }
	ofSnapshot := func(unready string) string { return `claim "1" is made from snapshot "7", ` + unready }
	tests := map[string]struct {
		kind, name string
		missing    func(*objects)
		told       string
	}{
		"no claim":                 {kindClaim, "8", func(o *objects) { delete(o.claims, "shop/8") }, ofClaim("which does not exist")},
		"a claim that goes":        {kindClaim, "8", func(o *objects) { o.claims["shop/8"].DeletionTimestamp = now() }, ofClaim("which is being deleted")},
		"a claim without a volume": {kindClaim, "8", func(o *objects) { o.claims["shop/8"].Spec.VolumeName = "" }, ofClaim("which is not bound yet")},
		"a volume that is lost":    {kindClaim, "8", func(o *objects) { clear(o.pvs) }, ofClaim("whose PersistentVolume pvc-")},
		"a Volume that is lost":    {kindClaim, "8", func(o *objects) { clear(o.volumes) }, ofClaim("whose volume does not exist")},
		"no snapshots at all":      {kindSnapshot, "7", func(o *objects) { o.snapshots = nil }, ofSnapshot("which is not known: the cluster has no VolumeSnapshots")},
		"no snapshot":              {kindSnapshot, "7", func(o *objects) { clear(o.snapshots) }, ofSnapshot("which does not exist")},
		"a snapshot without data":  {kindSnapshot, "7", func(o *objects) { clear(o.berth) }, ofSnapshot("which is lost: Berth has no snapshot snap-")},
		"a snapshot of a strange id": {kindSnapshot, "7", func(o *objects) { o.snapshots["shop/7"].Handle = "../volumes/x" },
			ofSnapshot("which is lost: Berth has no snapshot ../volumes/x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			group := ""
			if test.kind == kindSnapshot {
				group = groupSnapshot
			}
			o := stocked(pvc("1", gi, from(group, test.kind, test.name)))
			test.missing(o)
			got := read(t, o, podWith(claimVolume("1")))
			if !strings.Contains(got.Unready, test.told) || len(got.Wanted) != 0 {
				t.Errorf("got %+v, want %q", got, test.told)
			}
			if len(got.Sources) != 1 || got.Sources[0].Kind != test.kind || got.Sources[0].Name != test.name {
				t.Errorf("it waits for %+v", got.Sources)
			}
		})
	}
}
