package inline

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// story is a random life of one volume: actions of the kubelet, the API server, the machine
// and the disks, in any order.
type story struct {
	*node
	// used is whether the pod ever had its data; lost whether a disk took it.
	used, lost bool
	// refused is whether the volume may be refused to its pod: it was marked, so the
	// pod may have had it, and then it was lost or swept.
	refused bool
	// given is whether the kubelet has begun to unpublish the volume.
	given bool
	// forgotten and gone are whether kubelet and API server do not know the pod.
	forgotten, gone bool
}

// after notes the effects of the last action, and checks the invariants.
func (s *story) after(t *rapid.T) {
	if s.crash.Dead {
		s.crash.Dead, s.crash.At = false, 0
		s.restart()
	}
	created := slices.Contains(s.crash.Effects, "after Create")
	deleted := slices.Contains(s.crash.Effects, "after Delete")
	if created && s.used && !s.given {
		t.Fatal("a volume was made after the pod had its data")
	}
	// A volume that the pod never had may go as soon as the API server has forgotten the pod.
	if deleted && !s.given && (!s.gone || s.used && !s.forgotten) {
		t.Fatalf("the data was deleted; kubelet gave it back: %v, forgot it: %v, API server forgot it: %v", s.given, s.forgotten, s.gone)
	}
	s.crash.Effects = nil
	if s.mounted() {
		if !s.marked(t) {
			t.Fatal("the pod has data that is not marked")
		}
		s.used = true
	}
}

func (s *story) marked(t *rapid.T) bool {
	marked, err := s.marks.Has(Mark{id, owner})
	if err != nil {
		t.Fatal(err)
	}
	return marked
}

// publish is an action of the kubelet while it knows the pod and has not begun to unpublish the
// volume.
func (s *story) publish(t *rapid.T) {
	if s.forgotten || s.given {
		return
	}
	err := s.Publish(t.Context(), s.request())
	if err == nil && s.lost {
		t.Fatal("the pod got a volume after its data was lost")
	}
	noPool := errors.Is(err, provision.ErrPoolMissing) // all disks were lost
	if err != nil && !errors.Is(err, memory.ErrCrash) && !s.refused && !noPool {
		t.Fatalf("publishing: %v", err)
	}
}

func (s *story) unpublish(t *rapid.T) {
	if s.forgotten {
		return
	}
	s.given = true
	if err := s.Unpublish(t.Context(), h, s.target()); err != nil && !errors.Is(err, memory.ErrCrash) {
		t.Fatalf("unpublishing: %v", err)
	}
}

// forget is an action of the kubelet, once nothing of the pod is mounted any more.
func (s *story) forget(*rapid.T) {
	if !s.mounted() {
		s.kubeletForgets()
		s.forgotten = true
	}
}

func (s *story) look(t *rapid.T) {
	s.clock.SetTime(s.clock.Now().Add(askInterval))
	s.refused = s.refused || s.gone && s.marked(t) // it may crash before the mark goes
	err := s.Sweep(t.Context(), s.Pools())
	if err != nil && !errors.Is(err, memory.ErrCrash) && s.err == nil {
		t.Fatalf("sweeping: %v", err)
	}
}

// losePool removes the disk that has the volume.
func (s *story) losePool(t *rapid.T) {
	if r := s.record(); r != nil {
		s.lost = s.lost || s.used
		s.refused = s.refused || s.marked(t)
		s.reboot() // a mount of a lost disk lasts until the machine restarts
		s.disks.RemovePool(r.Pool)
	}
}

func TestRandomEventsNeverReplaceLeakOrDeleteDataTooEarly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{node: newNode(t)}
		rt.Repeat(map[string]func(*rapid.T){
			"publish":              s.publish,
			"publish again":        s.publish,
			"unpublish":            s.unpublish,
			"the process restarts": func(*rapid.T) { s.restart() },
			"the machine restarts": func(*rapid.T) { s.reboot() },
			"a disk is lost":       s.losePool,
			"the kubelet forgets":  s.forget,
			"the API forgets":      func(*rapid.T) { s.here.Delete(uid); s.gone = true },
			"the API goes away":    func(*rapid.T) { s.err = errors.New("away") },
			"the API comes back":   func(*rapid.T) { s.err = nil },
			"sweep":                s.look,
			"a crash is near": func(rt *rapid.T) {
				s.crash.Seen, s.crash.At = 0, rapid.IntRange(1, 6).Draw(rt, "effects")
			},
			"": s.after,
		})
		s.end(rt)
	})
}

// end stops all faults, and checks that a sweep removes everything.
func (s *story) end(t *rapid.T) {
	s.crash.At, s.crash.Dead, s.err = 0, false, nil
	s.reboot()
	s.kubeletForgets()
	s.here.Delete(uid)
	s.look(t)
	if got := s.left(); got != nothing {
		t.Fatalf("left on the node: %s", got)
	}
}
