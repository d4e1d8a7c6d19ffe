package inline

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
)

// The sweep removes a volume only if two witnesses agree and no process uses it.
func TestTheSweepRemovesOnlyVolumesOfPodsUnknownToKubeletAndAPIServer(t *testing.T) {
	for what, tc := range map[string]struct {
		prepare func(*node)
		removed bool
		fails   bool
	}{
		"the kubelet and the API server know the pod":          {func(*node) {}, false, false},
		"only the kubelet knows the pod":                       {func(n *node) { n.here.Delete(uid) }, false, false},
		"only the API server knows the pod":                    {func(n *node) { n.kubeletForgets() }, false, false},
		"neither the kubelet nor the API server knows the pod": {func(n *node) { n.kubeletForgets(); n.here.Delete(uid) }, true, false},
		"the API server does not answer":                       {func(n *node) { n.kubeletForgets(); n.here.Delete(uid); n.err = errors.New("away") }, false, true},
		"the kubelet's directory is not there": {func(n *node) {
			n.here.Delete(uid)
			n.Service.kubelet = kubeletdir.New(n.dir + "/nowhere")
		}, false, true},
		"the kubelet's directory is not there, and the API server knows the pod": {func(n *node) {
			n.Service.kubelet = kubeletdir.New(n.dir + "/nowhere")
		}, false, true},
		"the marks cannot be read": {func(n *node) {
			n.kubeletForgets()
			n.here.Delete(uid)
			n.fails["List marks"] = errBroken
		}, false, true},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			n.publish()
			n.reboot()
			tc.prepare(n)
			err := n.Sweep(t.Context(), n.Pools())
			if (err != nil) != tc.fails {
				t.Errorf("error %v", err)
			}
			if removed := n.record() == nil; removed != tc.removed {
				t.Errorf("removed: %v", removed)
			}
			marks, err := n.marks.List()
			if err != nil || (len(marks) == 0) != tc.removed {
				t.Errorf("marks %v, %v", marks, err)
			}
		})
	}
}

func TestAVolumeThatIsStillMountedIsNotSwept(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.kubeletForgets()
	n.here.Delete(uid)
	if err := n.Sweep(t.Context(), n.Pools()); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v", err, provision.ErrInUse)
	}
	if n.record() == nil {
		t.Error("the data was deleted under a mount")
	}
	if err := n.mounts.Unmount(t.Context(), n.target()); err != nil {
		t.Fatal(err)
	}
	n.sweep()
	if n.record() != nil {
		t.Error("the volume was not removed once it was unmounted")
	}
}

func TestAMarkWithoutDataIsSweptToo(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.reboot()
	n.disks.RemovePool(vg0)
	n.kubeletForgets()
	n.here.Delete(uid)
	n.sweep()
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}

func TestDataWithoutAMarkIsSweptToo(t *testing.T) {
	n := newNode(t)
	if _, err := n.pool.Create(t.Context(), provision.CreateRequest{ID: id, Pool: vg0, Size: gib, Inline: owner}); err != nil {
		t.Fatal(err)
	}
	n.kubeletForgets()
	n.here.Delete(uid)
	n.sweep()
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}

func TestTheVolumesOfClaimsAreNotSwept(t *testing.T) {
	n := newNode(t)
	claim := "pvc-" + uid
	if _, err := n.pool.Create(t.Context(), provision.CreateRequest{ID: claim, Pool: vg0, Size: gib}); err != nil {
		t.Fatal(err)
	}
	n.kubeletForgets()
	n.here.Clear()
	n.sweep()
	if _, err := n.pool.Get(t.Context(), claim); err != nil || n.asked != 0 {
		t.Errorf("%v, after %d questions", err, n.asked)
	}
}

func TestAVolumeThatIsBeingWorkedOnIsLeftAlone(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.reboot()
	n.kubeletForgets()
	n.here.Delete(uid)
	end, err := n.begin(t.Context(), volume{id, owner})
	if err != nil {
		t.Fatal(err)
	}
	n.sweep()
	if n.record() == nil {
		t.Error("the volume was removed in the middle of a call")
	}
	end()
	n.sweep()
	if n.record() != nil {
		t.Error("the volume was not removed after it")
	}
}

func TestTheAPIServerIsAskedSeldomAndNotWithoutNeed(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.sweep()
	if n.asked != 0 {
		t.Errorf("asked %d times about a pod that the kubelet has", n.asked)
	}
	n.kubeletForgets() // as for a pod that has run to its end
	for range 10 {
		if err := n.Sweep(t.Context(), n.Pools()); err != nil {
			t.Fatal(err)
		}
	}
	if n.asked != 1 {
		t.Errorf("asked %d times in one interval", n.asked)
	}
}

func TestOneVolumeThatCannotBeJudgedHoldsUpNoOther(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.reboot()
	n.kubeletForgets()
	n.here.Delete(uid)
	pools := n.Pools()
	pools[0].Volumes = append(pools[0].Volumes, provision.Volume{ID: "inline-odd", Inline: provision.Inline{PodUID: "..", Name: name}})
	if err := n.Sweep(t.Context(), pools); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("error %v; want the odd one named", err)
	}
	if n.record() != nil {
		t.Error("the other volume was not removed")
	}
}
