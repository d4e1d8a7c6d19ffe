package volumes

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

func TestTheDifferenceOfARequestFromAVolumeIsNamed(t *testing.T) {
	claim := &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: "1"}
	same := Request{Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast", MkfsOptions: "-I 512", Size: Size{Required: gi}, Claim: claim}
	for name, test := range map[string]struct {
		change func(r *Request)
		told   string
	}{
		"an equal request":                     {func(*Request) {}, ""},
		"an equal request with a larger limit": {func(r *Request) { r.Size.Limit = 2 * gi }, ""},
		"an equal request without a claim":     {func(r *Request) { r.Claim = nil }, ""},
		"a block volume":                       {func(r *Request) { r.Mode = v1alpha1.Block }, "its volumeMode is Filesystem, not Block"},
		"other options of mkfs":                {func(r *Request) { r.MkfsOptions = "" }, `its filesystem is made with the options "-I 512", not with ""`},
		"another class":                        {func(r *Request) { r.PoolClass = "slow" }, "its PoolClass is fast, not slow"},
		"a larger size":                        {func(r *Request) { r.Size.Required = 2 * gi }, "its size is 1Gi, less than the required 2Gi"},
		"a smaller limit":                      {func(r *Request) { r.Size = Size{Limit: 512 * mi} }, "its size is 1Gi, more than the limit of 512Mi"},
		"a copy of a volume":                   {func(r *Request) { r.Source = &v1alpha1.VolumeSource{Volume: "pvc-2"} }, "it was made from nothing, not from volume pvc-2"},
		"a copy of a snapshot":                 {func(r *Request) { r.Source = &v1alpha1.VolumeSource{Snapshot: "snap-2"} }, "it was made from nothing, not from snapshot snap-2"},
		"a new claim with the name of the old claim": {func(r *Request) {
			r.Claim = &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: "2"}
		}, "it belongs to claim shop/data, not shop/data"},
	} {
		t.Run(name, func(t *testing.T) {
			v := build(gi)
			v.Spec.MkfsOptions, v.Spec.ClaimRef = "-I 512", claim
			r := same
			test.change(&r)
			if d := Difference(&v.Spec, r); !strings.HasPrefix(d, test.told) || (d == "") != (test.told == "") {
				t.Errorf("told %q, want %q", d, test.told)
			}
		})
	}
}

func TestAVolumeWithoutAClaimIsAnyClaims(t *testing.T) {
	v := build(gi)
	r := Request{Mode: v1alpha1.Filesystem, PoolClass: "fast", Claim: &v1alpha1.ClaimReference{Namespace: "shop", Name: "data"}}
	if d := Difference(&v.Spec, r); d != "" {
		t.Error(d)
	}
}
