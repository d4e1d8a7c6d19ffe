package lvm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// copying is the story of a thick volume, a snapshot and copies. It goes on for as long as the
// process lives.
type copying struct {
	t    *testing.T
	host *lvmtest.Host
	p    *lvm.Provisioner
	c    *crash
	// unsteady says that others may be the cause of a problem that passes.
	unsteady bool
	// taken is the snapshot as it was first answered.
	taken provision.Snapshot
	trace trace
}

// thickStory runs from its first step to its last. Each step is repeated until it succeeds.
var thickStory = []func(*copying) error{
	func(s *copying) error { _, err := s.p.Create(s.t.Context(), request("pvc-1", 2)); return err },
	func(s *copying) error { return s.write("pvc-1", "old") },
	func(s *copying) error {
		got, err := s.p.Snapshot(s.t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
		if err == nil {
			s.taken = got
		}
		return err
	},
	func(s *copying) error { return s.write("pvc-1", "new") },
	func(s *copying) error { return s.make("pvc-2", 4, provision.Source{Snapshot: "snap-1"}) },
	func(s *copying) error { return s.make("pvc-3", 2, provision.Source{Volume: "pvc-1"}) },
	func(s *copying) error { return s.write("pvc-1", "gone") },
	func(s *copying) error { return s.whole("pvc-2", "old") },
	func(s *copying) error { return s.whole("pvc-3", "new") },
	func(s *copying) error { return s.p.Delete(s.t.Context(), "pvc-1") },
	func(s *copying) error { return s.p.DeleteSnapshot(s.t.Context(), "snap-1") },
	(*copying).free,
}

// write puts a text on each unit of a volume, as its user does. It fails once the process is dead,
// and the story repeats it with the next process.
func (s *copying) write(id, text string) error {
	for at := int64(0); at < 2*unit; at += unit {
		if s.c.dead() || !s.host.WriteAt("/dev/vg-a/"+id, text+"\x00", at+4096) {
			return errCrash
		}
	}
	return nil
}

func (s *copying) make(id string, units int64, source provision.Source) error {
	r := request(id, units)
	r.Source = source
	_, err := s.p.Create(s.t.Context(), r)
	return err
}

// whole returns nil if a copy is whole, and fails the test if it has a problem or wrong content.
func (s *copying) whole(id, want string) error {
	v, err := s.p.Get(s.t.Context(), id)
	switch {
	case err != nil:
		return err
	case v.Problem != "" && (s.c.dead() || s.unsteady):
		return errors.New(v.Problem)
	case v.Problem != "":
		s.t.Errorf("%s: %s", id, v.Problem)
	case v.Copying:
		return errors.New("it is being copied")
	}
	for at := int64(0); at < 2*unit; at += unit {
		if got := s.host.ReadAt(v.Content.Source, len(want)+1, at+4096); got != want+"\x00" {
			s.t.Errorf("%s holds %q at %d, want %q", id, got, at+4096, want)
		}
	}
	return nil
}

// free returns nil if nothing but the copies takes room.
func (s *copying) free() error {
	pools, err := s.p.Report(s.t.Context())
	if err != nil {
		return err
	}
	pool := pools[0]
	if len(pool.Volumes) != 2 || len(pool.Snapshots) > 0 || len(pool.Wiping) > 0 || pool.Foreign != 0 || pool.Free != pool.Total-6*unit {
		return fmt.Errorf("left is %+v", pool)
	}
	return nil
}

// live goes on with the story and returns the index of the step that failed, or the number of steps.
func (s *copying) live(from int) (next int) {
	for next = from; next < len(thickStory); next++ {
		var err error
		eventually(s.t, func() bool {
			if s.c.dead() {
				err = errCrash
				return true
			}
			err = thickStory[next](s)
			return err == nil || s.t.Failed()
		}, fmt.Sprintf("step %d does not come to an end", next))
		if err != nil {
			return next
		}
	}
	return next
}

// check compares the snapshot that a new process finds with the one that was answered before.
func (s *copying) check() {
	s.t.Helper()
	if s.taken.ID == "" {
		return
	}
	got, err := s.p.GetSnapshot(s.t.Context(), "snap-1")
	if errors.Is(err, provision.ErrNotFound) {
		return // it is deleted in the end
	}
	if err != nil || got.Problem != "" || !got.Taken.Equal(s.taken.Taken) {
		s.t.Errorf("the snapshot that was answered as %+v is %+v, %v", s.taken, got, err)
	}
}

// A process that ends at any effect of a copy, with the machine or alone, leaves a group
// from which the next one goes on. A snapshot that was answered holds the content that the volume
// had then. No incomplete copy is reported as whole. No room and no byte is left behind.
func TestAProcessMayEndAtAnyEffectOfThickCopies(t *testing.T) {
	for name, reboot := range map[string]bool{"alone": false, "with its machine": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for at := 1; !crashThick(t, at, reboot); at++ {
					if t.Failed() {
						t.Fatalf("crashed at effect %d", at)
					}
				}
			})
		})
	}
}

// crashThick ends a process at an effect, and says whether the story has no such effect.
func crashThick(t *testing.T, at int, reboot bool) (told bool) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 30})
	_, config := counted(host)
	config.CopyStep, config.WipeStep = unit, unit
	s := &copying{t: t, host: host, c: &crash{at: at}}
	s.c.on(host)
	s.trace.on(host)
	defer func() {
		if t.Failed() {
			t.Logf("what was done:\n%s", &s.trace)
		}
	}()
	p, stop := start(t, config)
	s.p = p
	next := s.live(0)
	stop()
	if next == len(thickStory) {
		t.Logf("%d effects", at-1)
		return true
	}
	s.trace.add(nil, "the process ended at step %d", next)
	s.c = endless()
	s.c.on(host)
	s.trace.on(host)
	if reboot {
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			for _, v := range groups[vg.Name].Volumes {
				v.Active = false
			}
			return ""
		})
	}
	s.p, stop = start(t, config)
	s.check()
	s.live(next)
	blank(t, host, s.p)
	stop()
	return false
}

// blank fails if a new volume shows any content of deleted ones.
func blank(t *testing.T, host *lvmtest.Host, p provision.Provisioner) {
	t.Helper()
	pool := poolOf(t, p, vg)
	if v := create(t, p, request("pvc-9", pool.Free/unit)); shows(host, v) {
		t.Error("a new volume shows what was deleted")
	}
}

// A process that is ending may change the group after its successor has read it. The successor
// notices that before it writes: a copy that became whole may be in use.
func TestACopyThatAnotherProcessMadeWholeIsNotFilledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		opened := func(open bool) { s.host.On("/dev/vg-a/pvc-2", func(v *lvmtest.Volume) { v.Open = open }) }
		if _, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"}); err != nil {
			t.Fatal(err)
		}
		s.stop() // before anything is copied
		opened(true)
		s.restart()
		s.let()
		eventually(t, func() bool { v, err := s.p.Get(t.Context(), "pvc-2"); return err == nil && v.Problem != "" }, "it is filled though others have it open")
		s.host.Edit(func(groups map[string]*lvmtest.Group) (unnoticed string) {
			v := groups[vg.Name].Volumes["pvc-2"]
			v.Tags = append(slices.DeleteFunc(v.Tags, func(tag string) bool { return strings.HasPrefix(tag, "berth.dev/copying=") }), "berth.dev/volume=pvc-2")
			groups[vg.Name].Seqno++
			return ""
		})
		s.host.WriteAt("/dev/vg-a/pvc-2", "its user's", 4096)
		opened(false)
		eventually(t, func() bool { v, err := s.p.Get(t.Context(), "pvc-2"); return err == nil && !v.Copying }, "it is not seen to be whole")
		if got := s.host.ReadAt("/dev/vg-a/pvc-2", 10, 4096); got != "its user's" {
			t.Errorf("it holds %q", got)
		}
	})
}
