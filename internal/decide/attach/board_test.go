package attach

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"berth.dev/berth/internal/ownership"
)

func TestWhatTheRecordOfASharedDiskSays(t *testing.T) {
	entries := []ownership.Replica{{Node: "n1", State: ownership.Ready}, {Node: "n2", State: ownership.Removing}}
	sharing := ownership.Sharing{MaxShares: 3, Yields: true}
	said := func(change func(*Volume)) Volume {
		v := Volume{Name: "v", Factor: 2, MaxShares: 3, Yields: true,
			Entries: map[string]ownership.State{"n1": ownership.Ready, "n2": ownership.Removing}}
		change(&v)
		return v
	}
	for name, test := range map[string]struct {
		record ownership.Volume
		want   Volume
	}{
		"a node may write": {
			ownership.Volume{Primary: ownership.Primary{Phase: ownership.Active, Node: "n1"}},
			said(func(v *Volume) { v.Owners, v.Executors = []string{"n1"}, []string{""} }),
		},
		"a node may write that a standby shuts out": {
			ownership.Volume{Primary: ownership.Primary{Phase: ownership.Active, Node: "n1"}, FenceRequest: ownership.FenceRequest{Executor: "n2"}},
			said(func(v *Volume) { v.Owners, v.Executors = []string{"n1"}, []string{"n2"} }),
		},
		"a node has let go, and was shut out before": {
			ownership.Volume{Primary: ownership.Primary{Phase: ownership.Released, Node: "n1"}, FenceRequest: ownership.FenceRequest{Executor: "n2"}},
			said(func(*Volume) {}),
		},
		"it is being deleted": {ownership.Volume{Deleting: true}, said(func(v *Volume) { v.Deleting = true })},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.record
			r.Factor, r.Sharing, r.Replicas = 2, sharing, entries
			if got := VolumeOf("v", &r); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAVolumeThatTheBoardDoesNotKnowHasNoPlaces(t *testing.T) {
	b := New()
	b.good("n", 1)
	if got := b.Places("v", []string{"n"}); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestTheSlotOfAnAttachmentThatIsGoneIsFree(t *testing.T) {
	b := New()
	b.good("n", 2)
	b.disk("v", nil)
	b.disk("w", []string{"n", "other"})
	b.disk("w", []string{"other"})
	if got := b.Places("v", []string{"n"})["n"].Slots; got != 2 {
		t.Errorf("%d slots are left of 2", got)
	}
}

// TestAPodWaitsForTheVolumesThatItUses: a pod on node n uses the claim of volume v.
func TestAPodWaitsForTheVolumesThatItUses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Board)
		waits  bool
	}{
		"the claim is bound to the volume": {func(*Board) {}, true},
		"the pod has ended":                {func(b *Board) { b.pod("p", "n", []string{"v"}, func(p *Pod) { p.Ended = true }) }, false},
		"the volume is being deleted":      {func(b *Board) { b.disk("v", nil, func(v *Volume) { v.Deleting = true }) }, false},
		"the claim is bound to nothing":    {func(b *Board) { b.SetClaim("shop/v", Claim{UID: "v"}) }, false},
		"the claim was made anew":          {func(b *Board) { b.SetClaim("shop/v", Claim{UID: "anew", Volume: "pv-v"}) }, false},
		"the claim is not known":           {func(b *Board) { b.DropClaim("shop/v") }, false},
		"the volume is not known":          {func(b *Board) { b.DropVolume("v") }, false},
		"the attachment is there":          {func(b *Board) { b.disk("v", []string{"n"}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n", 1)
			b.disk("v", nil)
			b.pod("p", "n", []string{"v"})
			test.change(b)
			if got := len(b.waiting("n")) > 0; got != test.waits {
				t.Errorf("it waits: %v", got)
			}
		})
	}
}

// TestWhosePodsAVolumeHeeds: a pod uses the claim shop/v, whose PersistentVolume is that of volume v, and may
// only run on another node than n.
func TestWhosePodsAVolumeHeeds(t *testing.T) {
	bound := func(handle string) Bound {
		return Bound{Handle: handle, Claim: "shop/v", ClaimUID: types.UID("v")}
	}
	for name, test := range map[string]struct {
		change func(*Board)
		heeds  bool
	}{
		"the claim is bound to the volume":         {func(*Board) {}, true},
		"the claim is bound to another volume":     {func(b *Board) { b.SetClaim("shop/v", Claim{UID: "v", Volume: "pv-w"}) }, false},
		"the claim was made anew":                  {func(b *Board) { b.SetClaim("shop/v", Claim{UID: "anew", Volume: "pv-v"}) }, false},
		"the claim is not known":                   {func(b *Board) { b.DropClaim("shop/v") }, false},
		"the PersistentVolume is not known":        {func(b *Board) { b.DropBound("pv-v") }, false},
		"the PersistentVolume became another's":    {func(b *Board) { b.SetBound("pv-v", bound("w")) }, false},
		"the PersistentVolume came back to it":     {func(b *Board) { b.SetBound("pv-v", bound("w")); b.SetBound("pv-v", bound("v")) }, true},
		"the pod uses another claim now":           {func(b *Board) { b.pod("p", "", []string{"w"}, elsewhere) }, false},
		"the pod is gone":                          {func(b *Board) { b.DropPod("p") }, false},
		"a pod without claims came in its place":   {func(b *Board) { b.pod("p", "", nil, elsewhere) }, false},
		"another volume's PersistentVolume is new": {func(b *Board) { b.disk("w", nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.good("n", 1)
			b.disk("v", nil)
			b.pod("p", "", []string{"v"}, elsewhere)
			test.change(b)
			if got := b.Places("v", []string{"n"})["n"].Reason == "PodsElsewhere"; got != test.heeds {
				t.Errorf("it heeds the pod: %v", got)
			}
		})
	}
}

// elsewhere lets a pod run on a node with another name only.
func elsewhere(p *Pod) {
	p.Required = nodeaffinity.NewRequiredNodeAffinity(map[string]string{"kubernetes.io/hostname": "other"}, nil)
}
