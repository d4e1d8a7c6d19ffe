package luns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// slow is a reader of the API server that needs a second for a list, and counts lists and Volumes that were sent.
type slow struct {
	client.Reader
	lists, sent atomic.Int64
}

func (r *slow) List(ctx context.Context, l client.ObjectList, o ...client.ListOption) error {
	r.lists.Add(1)
	<-time.After(time.Second)
	err := r.Reader.List(ctx, l, o...)
	if all, is := l.(*v1alpha1.VolumeList); is {
		r.sent.Add(int64(len(all.Items)))
	}
	return err
}

func slowly(s *lagging.Server) (*Service, *slow) {
	live := &slow{Reader: s.Live()}
	return New(driver.Disk().View(s.Client()), driver.Disk().Live(live), nil, &volumes.Watchers{}), live
}

// A volume costs two lists before each of its three writes, however many are made at once.
func TestCallsAtOnceDoNotChooseTheSameLUN(t *testing.T) {
	const n = 12
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for i := range n {
			objects = append(objects, lun(fmt.Sprintf("l%02d", i), gi))
		}
		s := lagging.New(t, objects...)
		svc, live := slowly(s)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := svc.Create(t.Context(), claim(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		read(t, s).consistent(t)
		if got := live.lists.Load(); got != 6*n {
			t.Errorf("%d volumes cost %d lists", n, got)
		}
	})
}

func TestACallDoesNotWaitForOthersBeyondItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lagging.New(t, lun("a", gi), lun("b", gi))
		svc, _ := slowly(s)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := svc.Create(t.Context(), claim(1)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := svc.Create(ctx, claim(2)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second call ends with %v", err)
		}
		wg.Wait()
		if l := read(t, s); len(l.volumes) != 1 {
			t.Errorf("there are %d volumes", len(l.volumes))
		}
	})
}

// A claim that finds no LUN asks for as long as it lasts.
func TestAClaimWithoutALUNListsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := volume("other", "a")
		s := lagging.New(t, lun("a", gi, of(other)), other)
		svc, live := slowly(s)
		_, err := svc.Create(t.Context(), claim(1))
		if got := live.lists.Load(); !errors.Is(err, usecase.ErrUnplaceable) || got > 0 {
			t.Errorf("%v after %d lists", err, got)
		}
	})
}

// The cache has not seen yet that another volume has the LUN, or that a LUN is free.
func TestACacheThatLagsGivesNoLUNAway(t *testing.T) {
	other := volume("other", "")
	s := lagging.New(t, lun("a", gi), other)
	s.Hold(&v1alpha1.LUN{})
	l := &read(t, s).luns[0]
	of(other)(l)
	if err := s.Others().Status().Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if _, err := service(s, s.Client()).Create(t.Context(), claim(1)); !errors.Is(err, usecase.ErrUnplaceable) {
		t.Errorf("of a LUN that is in use: %v", err)
	}
	s.Advance()
	s.Hold(&v1alpha1.LUN{})
	if err := s.Others().Create(t.Context(), lun("b", gi)); err != nil {
		t.Fatal(err)
	}
	if _, err := service(s, s.Client()).Create(t.Context(), claim(2)); !errors.Is(err, usecase.ErrUnplaceable) {
		t.Errorf("of a LUN that the cache does not show: %v", err)
	}
	s.Advance()
	if _, err := service(s, s.Client()).Create(t.Context(), claim(2)); err != nil {
		t.Error(err)
	}
}

func TestVolumesOfPoolsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := volume("pvc-00000000-0000-0000-0000-00000000000f", "")
		local.Spec.Driver = ""
		s := lagging.New(t, lun("a", gi), local)
		svc, live := slowly(s)
		if _, err := svc.Create(t.Context(), claim(1)); err != nil {
			t.Fatal(err)
		}
		if got := live.sent.Load(); got != 2 { // the volume itself, before each of its last two writes
			t.Errorf("%d Volumes were sent", got)
		}
	})
}
