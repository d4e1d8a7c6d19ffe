package lvm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// renaming is a machine whose administrator renames the group at one moment of the provisioner's
// work, and renames it back a minute later. A moment is a command, or a question to the kernel about
// one device.
type renaming struct {
	*lvmtest.Host
	ctx context.Context
	p   *lvm.Provisioner

	mu       sync.Mutex
	at, seen int
	back     sync.WaitGroup
}

func (r *renaming) moment() {
	r.mu.Lock()
	r.seen++
	now := r.seen == r.at
	r.mu.Unlock()
	if !now {
		return
	}
	r.rename(vg.Name, "renamed")
	_, _ = r.p.Get(r.ctx, "pvc-unknown") // which has all groups read
	r.back.Go(func() {
		<-time.After(time.Minute)
		r.rename("renamed", vg.Name)
	})
}

func (r *renaming) rename(from, to string) {
	r.Edit(func(groups map[string]*lvmtest.Group) string {
		g := groups[from]
		delete(groups, from)
		groups[to], g.Name = g, to
		g.Seqno++
		return g.Device
	})
	node := "/dev/" + to + "/pvc-1"
	r.Mislead(node, node) // LVM makes it anew
}

func (r *renaming) passed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen >= r.at
}

func (r *renaming) Query(ctx context.Context, c run.Command) ([]byte, error) {
	r.moment()
	return r.Host.Query(ctx, c)
}

func (r *renaming) Change(c run.Command) ([]byte, error) {
	r.moment()
	defer r.moment()
	return r.Host.Change(c)
}

func (r *renaming) Leads(path string, is provision.Identity) error {
	r.moment()
	return r.Host.Leads(path, is)
}

func (r *renaming) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	r.moment()
	return r.Host.Hold(path, is)
}

func (r *renaming) Look(path string, is provision.Identity) (lvm.Looker, error) {
	r.moment()
	return r.Host.Look(path, is)
}

func (r *renaming) Sequence(device string) (uint64, error) {
	r.moment()
	return r.Host.Sequence(device)
}

// A group is known by its new name alone. All that is under way in it ends, and goes on from where
// it was: by the id of a volume, or once the group has its name again.
func TestAGroupMayBeRenamedAtAnyMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 1; ; at++ {
			if !renamedAt(t, at) {
				t.Logf("%d moments", at-1)
				return
			}
			if t.Failed() {
				t.Fatalf("renamed at moment %d", at)
			}
		}
	})
}

// renamedAt says whether the story has so many moments.
func renamedAt(t *testing.T, at int) bool {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 30})
	host.Edit(func(groups map[string]*lvmtest.Group) string {
		groups[vg.Name].UUID = vg.Name + "-uuid" // which a new name does not change
		return ""
	})
	r := &renaming{Host: host, ctx: t.Context()}
	p, stop := start(t, lvm.Config{Runner: r, Devices: r, Mkfs: host.Mkfs, CopyStep: unit, WipeStep: unit})
	defer stop()
	poolOf(t, p, vg)
	p.Wait()
	r.mu.Lock()
	r.p, r.at = p, r.seen+at
	r.mu.Unlock()
	s := &copying{t: t, host: host, p: p, c: endless(), unsteady: true}
	steps := slices.Concat(thickStory[:2], []func(*copying) error{(*copying).wake}, thickStory[2:])
	var err error
	defer func() {
		if t.Failed() {
			t.Logf("renamed at moment %d, and in the end: %v", at, err)
		}
	}()
	for i, step := range steps {
		eventually(t, func() bool {
			if err = step(s); err != nil && strings.Contains(err.Error(), "panic: ") {
				t.Error(err)
			}
			if err != nil {
				_, _ = p.Report(t.Context()) // as the agent does all the time, which reads the groups that are due
			}
			return err == nil || t.Failed()
		}, fmt.Sprintf("step %d does not come to an end", i))
	}
	p.Wait()
	r.back.Wait()
	return r.passed()
}

// wake has a volume activated that the machine deactivated.
func (s *copying) wake() error {
	if path := "/dev/vg-a/pvc-1"; s.host.Exists(path) {
		s.host.Deactivate(path)
	}
	v, err := s.p.Get(s.t.Context(), "pvc-1")
	switch {
	case err != nil:
		return err
	case v.ID != "pvc-1":
		s.t.Errorf("asked for pvc-1, got %+v", v)
	case v.Problem != "":
		return fmt.Errorf("%s", v.Problem)
	}
	return s.host.Leads(v.Content.Source, v.Content.Identity)
}
