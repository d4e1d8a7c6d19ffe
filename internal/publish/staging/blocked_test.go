package staging

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/keyed"
)

// blocked is a node on which every operation on one volume hangs, with one call
// for it under way.
func blocked(t *testing.T) (n *node, release func() error) {
	t.Helper()
	n = newNode(t)
	n.volume(t, id, "ext4")
	n.volume(t, other, "ext4")
	n.stage(t, other)
	entered, once := make(chan struct{}), sync.Once{}
	n.hang = func(subject string) bool {
		if !strings.Contains(subject, id) {
			return false
		}
		once.Do(func() { close(entered) })
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Stage(ctx, StageRequest{ID: id, Path: n.path("stage-" + id)}) }()
	<-entered
	return n, func() error { cancel(); return <-done }
}

func TestABlockedVolumeDelaysNoOther(t *testing.T) {
	n, release := blocked(t)
	n.publish(t, other, "pod2")
	if _, err := n.Stats(t.Context(), other, n.path("pod2")); err != nil {
		t.Errorf("stats: %v", err)
	}
	if _, err := n.Expand(t.Context(), other, n.path("pod2"), 0); err != nil {
		t.Errorf("expand: %v", err)
	}
	if err := n.Unpublish(t.Context(), other, n.path("pod2")); err != nil {
		t.Errorf("unpublish: %v", err)
	}
	if err := n.Unstage(t.Context(), other, n.path("stage-"+other)); err != nil {
		t.Errorf("unstage: %v", err)
	}
	if err := release(); !errors.Is(err, context.Canceled) {
		t.Errorf("the blocked call ended with %v", err)
	}
}

func TestASecondCallForABusyVolumeIsRefusedAtOnce(t *testing.T) {
	n, release := blocked(t)
	calls := map[string]error{
		"stage":     n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id)}),
		"unstage":   n.Unstage(t.Context(), id, n.path("stage-"+id)),
		"publish":   n.Publish(t.Context(), n.publication(id, "pod1")),
		"unpublish": n.Unpublish(t.Context(), id, n.path("pod1")),
	}
	_, calls["expand"] = n.Expand(t.Context(), id, n.path("pod1"), 0)
	for call, err := range calls {
		if !errors.Is(err, keyed.ErrLocked) {
			t.Errorf("%s: %v; want %v", call, err, keyed.ErrLocked)
		}
	}
	_ = release()
	n.hang = nil
	n.stage(t, id)
}

func TestAPodsEndAndItsFiguresDoNotWaitForTheReplicaWorkerButTheRestDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.volume(t, id, "ext4")
		n.stage(t, id)
		n.publish(t, id, "pod1")
		unlock, err := n.locks.Lock(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Stats(t.Context(), id, n.path("pod1")); err != nil {
			t.Error(err)
		}
		if err := n.Unpublish(t.Context(), id, n.path("pod1")); err != nil {
			t.Error(err)
		}
		unlock()
		for call, do := range waiting {
			unlock, err := n.locks.Lock(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- do(t.Context(), n) }()
			synctest.Wait()
			if len(done) > 0 {
				t.Fatalf("%s did not wait: %v", call, <-done)
			}
			unlock()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", call, err)
			}
			n.stage(t, id)
		}
	})
}

// waiting are the calls for a staged volume that wait for the replica worker.
var waiting = map[string]func(ctx context.Context, n *node) error{
	"stage": func(ctx context.Context, n *node) error {
		return n.Stage(ctx, StageRequest{ID: id, Path: n.path("stage-" + id)})
	},
	"publish": func(ctx context.Context, n *node) error { return n.Publish(ctx, n.publication(id, "pod2")) },
	"unstage": func(ctx context.Context, n *node) error { return n.Unstage(ctx, id, n.path("stage-"+id)) },
	"expand": func(ctx context.Context, n *node) error {
		_, err := n.Expand(ctx, id, n.path("stage-"+id), 0)
		return err
	},
}

func TestAWaitingCallEndsWithItsCaller(t *testing.T) {
	for call, do := range waiting {
		n := newNode(t)
		n.volume(t, id, "ext4")
		n.stage(t, id)
		unlock, err := n.locks.Lock(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- do(ctx, n) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v; want %v", call, err, context.Canceled)
		}
		if _, err := n.calls.TryLock(id); err != nil {
			t.Errorf("%s: the volume stays busy", call)
		}
		unlock()
	}
}

// A device that is bound and not open yet looks unused to its provisioner.
func TestADeletionThatBeginsWhileABlockVolumeIsGivenToAPodFindsThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.volume(t, id, "")
		n.stage(t, id)
		found, source := make(chan []string, 1), n.record(t, id).Content.Source
		n.seen = func(operation string) error {
			if operation != "get" {
				return nil
			}
			go func() {
				unlock, err := n.locks.Lock(t.Context(), id)
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()
				found <- n.mounts.Mounts(source)
			}()
			synctest.Wait()
			return nil
		}
		n.publish(t, id, "pod1")
		if got, want := <-found, []string{n.path("pod1")}; !slices.Equal(got, want) {
			t.Errorf("the deletion finds the volume at %v, want %v", got, want)
		}
	})
}
