package lvm_test

import (
	"context"
	"errors"
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

// paused is a machine on which the next process of an operation waits until it may go on.
type paused struct{ begun, may chan struct{} }

func pause(host *lvmtest.Host, operation string) paused {
	p := paused{make(chan struct{}), make(chan struct{})}
	var once sync.Once
	disturb(host, only(operation, func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
		once.Do(func() {
			close(p.begun)
			<-p.may
		})
		return do()
	}))
	return p
}

// appears has a volume of an id come into another group, as with an imported disk, and be noticed.
func appears(t *testing.T, host *lvmtest.Host, p provision.Provisioner, id string) {
	t.Helper()
	putGroup(host, "vgclone", "vgclone", "clone", "/dev/sdz", id)
	if _, err := p.Get(t.Context(), "pvc-unknown"); !errors.Is(err, provision.ErrNotFound) {
		t.Error(err)
	}
}

// The caller has looked for the volume before it waits for the group.
func TestAVolumeThatAppearsInAnotherGroupMeanwhileIsNotMadeTwice(t *testing.T) {
	for name, source := range map[string]provision.Source{"a blank one": {}, "a clone": {Volume: "pvc-0"}} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			_, c := counted(host)
			p, _ := start(t, c)
			create(t, p, request("pvc-0", 2))
			first, made := pause(host, "lvcreate"), make(chan error, 2)
			ask := func(r provision.CreateRequest) { _, err := p.Create(t.Context(), r); made <- err }
			go ask(request("pvc-9", 1))
			<-first.begun
			r := request("pvc-1", 2)
			r.Source = source
			go ask(r)
			synctest.Wait() // until it waits for the group
			appears(t, host, p, "pvc-1")
			close(first.may)
			if err := errors.Join(<-made, <-made); !errors.Is(err, provision.ErrConflict) {
				t.Errorf("got %v, want ErrConflict", err)
			}
			if ids, _ := whatIs(host, vg.Name); len(ids) != 2 {
				t.Errorf("the group has %v", ids)
			}
		}))
	}
}

// Which of the two is the volume only an administrator knows.
func TestARemovalOfAnIDThatIsInDoubtByThenIsNotMadeWithTheOthers(t *testing.T) {
	host, p, g, _ := removing(t)
	ids := carveSome(t, p, vg, 4)
	var all []underWay
	all = append(all, removeSoon(t.Context(), p, ids[0]))
	<-g.begun
	for _, id := range ids[1:] {
		all = append(all, removeSoon(t.Context(), p, id))
	}
	eventually(t, func() bool { return p.Waiting() == 3 }, "they do not all wait")
	appears(t, host, p, ids[2])
	close(g.open)
	for _, d := range all {
		if err := <-d.ended; (d.id == ids[2]) != errors.Is(err, provision.ErrConflict) || d.id != ids[2] && err != nil {
			t.Errorf("%s: %v", d.id, err)
		}
	}
	if left, _ := whatIs(host, vg.Name); len(left) != 2 || !slices.Contains(left, ids[2]) { // beside the thin pool
		t.Errorf("left is %v", left)
	}
}

func TestAVolumeThatTwoCallersDeleteIsDeletedForBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		mark, may := pause(host, "lvchange"), make(chan struct{})
		host.Disturb(func(h *lvmtest.Host) {
			h.Wiping = func(_ string, _, _ int64, do func() error) error { <-may; return do() }
		})
		first := removeSoon(t.Context(), p, "pvc-1")
		<-mark.begun
		second := removeSoon(t.Context(), p, "pvc-1")
		synctest.Wait()
		close(mark.may)
		if err := errors.Join(<-first.ended, <-second.ended); err != nil { // though the wiping holds the device
			t.Error(err)
		}
		close(may)
		settle(t, p)
	})
}

// asked is the answer to a caller.
type asked struct {
	provision.Volume
	err error
}

func getSoon(ctx context.Context, p *lvm.Provisioner, id string) chan asked {
	got := make(chan asked, 1)
	go func() {
		v, err := p.Get(ctx, id)
		got <- asked{v, err}
	}()
	synctest.Wait()
	return got
}

func TestACallerWaitsForItsInactiveVolumeWhileItsGroupIsChanged(t *testing.T) {
	waiting := func(t *testing.T, operation string, change func(p *lvm.Provisioner) error) (*lvmtest.Host, *lvm.Provisioner, paused, func() map[string]int) {
		host, c := wiping()
		counter, counting := counted(host)
		c.Runner = counting.Runner
		p, _ := start(t, c)
		r := request("pvc-1", 2)
		r.Wipe = provision.WipeNone
		create(t, p, r)
		other := pause(host, operation)
		ended := make(chan error, 1)
		go func() { ended <- change(p) }()
		<-other.begun
		host.Deactivate("/dev/vg-a/pvc-1")
		counter.Take()
		t.Cleanup(func() {
			if err := <-ended; err != nil {
				t.Errorf("the other change: %v", err)
			}
		})
		return host, p, other, counter.Take
	}
	another := func(p *lvm.Provisioner) error {
		_, err := p.Create(context.WithoutCancel(t.Context()), request("pvc-2", 1))
		return err
	}
	t.Run("and gives up", inBubble(func(t *testing.T) {
		_, p, other, started := waiting(t, "lvcreate", another)
		ctx, cancel := context.WithCancel(t.Context())
		got := getSoon(ctx, p, "pvc-1")
		cancel()
		if a := <-got; !errors.Is(a.err, context.Canceled) {
			t.Errorf("got %+v", a)
		}
		synctest.Wait()
		if n := started()["lvchange"]; n != 0 {
			t.Error("it is activated all the same, beside the other change")
		}
		close(other.may)
	}))
	t.Run("and another caller does, too", inBubble(func(t *testing.T) {
		_, p, other, started := waiting(t, "lvcreate", another)
		first, second := getSoon(t.Context(), p, "pvc-1"), getSoon(t.Context(), p, "pvc-1")
		close(other.may)
		for _, a := range []asked{<-first, <-second} {
			if a.err != nil || a.Problem != "" {
				t.Errorf("got %+v", a)
			}
		}
		if n := started()["lvchange"]; n != 1 {
			t.Errorf("%d processes activated it, want 1", n)
		}
	}))
	t.Run("and it is deleted", inBubble(func(t *testing.T) {
		_, p, other, started := waiting(t, "lvremove", func(p *lvm.Provisioner) error { return p.Delete(context.WithoutCancel(t.Context()), "pvc-1") })
		got := getSoon(t.Context(), p, "pvc-1")
		close(other.may)
		if a := <-got; !errors.Is(a.err, provision.ErrNotFound) {
			t.Errorf("got %+v", a)
		}
		if n := started()["lvchange"]; n != 0 {
			t.Error("what is not there was activated")
		}
	}))
}

func TestAVolumeThatCannotBeReachedSaysWhyAndWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		operation string
		is        func(run.Command) error
		targets   map[string]lvmtest.Presence
		want      []string
	}{
		"its node stays wrong":                   {operation: "vgmknodes", want: []string{"(vgmknodes vg-a/pvc-1)", "is another device"}},
		"LVM does not make its node":             {operation: "vgmknodes", is: exit5, want: []string{"(vgmknodes vg-a/pvc-1)", "something strange"}},
		"LVM does not activate it":               {operation: "lvchange", is: exit5, want: []string{"it cannot be activated", "something strange"}},
		"nor has the kernel other kinds of them": {operation: "lvchange", is: exit5, targets: map[string]lvmtest.Presence{"thin-pool": lvmtest.Missing}, want: []string{"something strange"}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
			_, c := counted(host)
			p, _ := start(t, c)
			create(t, p, request("pvc-1", 1))
			create(t, p, request("pvc-2", 1))
			if tc.operation == "lvchange" {
				host.Deactivate("/dev/vg-a/pvc-1")
			} else {
				host.Mislead("/dev/vg-a/pvc-1", "/dev/vg-a/pvc-2")
			}
			host.Disturb(func(h *lvmtest.Host) { h.Targets = tc.targets })
			disturb(host, only(tc.operation, func(c run.Command, _ func() ([]byte, error)) ([]byte, error) {
				if tc.is == nil {
					return nil, nil
				}
				return nil, tc.is(c)
			}))
			v, err := p.Get(t.Context(), "pvc-1")
			if err != nil || strings.Contains(v.Problem, "modprobe") {
				t.Errorf("got %+v, %v", v, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(v.Problem, want) {
					t.Errorf("it says %q, without %q", v.Problem, want)
				}
			}
		}))
	}
}

func TestAnActivationThatHangsIsTheProblemOfItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 1))
		host.Deactivate("/dev/vg-a/pvc-1")
		hangs := pause(host, "lvchange")
		got := getSoon(t.Context(), p, "pvc-1")
		<-time.After(3 * time.Minute)
		if problem := poolOf(t, p, vg).Problem; !strings.Contains(problem, "3m0s") || p.Healthy() == nil {
			t.Errorf("the problem is %q, and the health %v", problem, p.Healthy())
		}
		close(hangs.may)
		if a := <-got; a.err != nil || a.Problem != "" {
			t.Errorf("got %+v", a)
		}
	})
}

func TestEachOwnChangeIsSignalledOnceItIsMade(t *testing.T) {
	_, p := unwatched(t)
	signalled := func() bool {
		select {
		case <-p.Changed():
			return true
		default:
			return false
		}
	}
	create(t, p, request("pvc-1", 2))
	if !signalled() {
		t.Error("a new volume is not signalled")
	}
	if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Ext4}); err != nil || !signalled() {
		t.Errorf("a filesystem is not signalled: %v", err)
	}
}
