package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
)

// static is a Volume of 4 GiB on n1 that was made for no claim.
func static(name string) ledger.VolumeObject {
	v := volume(name, "n1", "vg0", 4*gib, ledger.Ready)
	v.Name, v.Claim = name, ""
	return v
}

func pv(name, volume, claim string) ledger.PVObject {
	return ledger.PVObject{Name: name, Volume: volume, Claim: claim}
}

// whose fails unless exactly the wanted ones of the claims a to c need no room on
// n1, because they have their volume there.
func whose(c *cluster, want string) {
	c.t.Helper()
	got := ""
	for _, uid := range []string{"a", "b", "c"} {
		if c.fits("p", "n1", claimed(uid, 100*gib)).Fits() {
			got += uid
		}
	}
	if got != want {
		c.t.Errorf("volumes there are those of %q, want %q", got, want)
	}
}

func TestAPersistentVolumeTiesItsClaimToItsVolumeAndNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*cluster)
		want string
	}{
		"when there is none": {func(*cluster) {}, ""},
		"when there is one":  {func(c *cluster) { c.ObservePV(pv("pv", "one", "a")) }, "a"},
		"when it is of another Volume by now": {func(c *cluster) {
			c.ObservePV(pv("pv", "one", "a"))
			c.ObservePV(pv("pv", "not-here", "b"))
		}, ""},
		"when it is gone": {func(c *cluster) {
			c.ObservePV(pv("pv", "one", "a"))
			c.ObservePVGone("pv")
		}, ""},
		"when one of several of a Volume is gone": {func(c *cluster) {
			c.ObservePV(pv("first", "one", "a"))
			c.ObservePV(pv("second", "one", "b"))
			c.ObservePVGone("first")
		}, "b"},
		"when one of several of a claim is gone": {func(c *cluster) {
			c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
			c.ObservePV(pv("pv", "one", "c"))
			c.ObservePVGone("pv")
		}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.ObserveVolume(static("one"))
			test.do(c)
			whose(c, test.want)
			c.ObserveVolume(static("one")) // seeing it again changes nothing
			whose(c, test.want)
		})
	}
}
