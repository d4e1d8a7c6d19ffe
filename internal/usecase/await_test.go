package usecase

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

// version is the volume under test at a resourceVersion, and done if it is carved.
func version(rv string, uid types.UID, carved bool) *v1alpha1.Volume {
	v := build(gi, wanted("n"))
	v.ResourceVersion, v.UID = rv, uid
	if carved {
		says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)(v)
	}
	return v
}

// carved judges that the volume under test is there.
func carved(v *v1alpha1.Volume) Answer {
	if v.Entry("n") == nil {
		return Answer{State: Waiting, Node: "n"}
	}
	return Answer{State: Done}
}

func TestAwait(t *testing.T) {
	tests := map[string]struct {
		events func(h cache.ResourceEventHandler)
		done   bool
		gone   bool
	}{
		"an update with the answer ends the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnUpdate(nil, version("11", "uid", true)) }, done: true,
		},
		"an update from before the write does not end the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnUpdate(nil, version("9", "uid", true)) },
		},
		"the end of an earlier object of the same name does not end the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnDelete(version("8", "old", false)) },
		},
		"the end of the object ends the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnDelete(version("12", "uid", false)) }, gone: true,
		},
		"the end of the object that the informer missed ends the wait": {
			events: func(h cache.ResourceEventHandler) {
				h.OnDelete(cache.DeletedFinalStateUnknown{Obj: version("10", "uid", false)})
			}, gone: true,
		},
		"the end of an object that the informer has never seen does not end the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Key: "v"}) },
		},
		"an update with an unknown version ends the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnUpdate(nil, version("strange", "uid", true)) }, done: true,
		},
		"a newer object of the same name ends the wait": {
			events: func(h cache.ResourceEventHandler) { h.OnAdd(version("12", "new", true), false) }, gone: true,
		},
		"the answer of another volume does not end the wait": {
			events: func(h cache.ResourceEventHandler) {
				other := version("11", "uid", true)
				other.Name = "other"
				h.OnUpdate(nil, other)
			},
		},
		"only the last of many events counts": {
			events: func(h cache.ResourceEventHandler) {
				h.OnUpdate(nil, version("11", "uid", false))
				h.OnUpdate(nil, version("12", "uid", false))
				h.OnUpdate(nil, version("13", "uid", true))
			}, done: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				volumes := Objects[*v1alpha1.Volume]{Kind: "volume"}
				var watchers Watchers[*v1alpha1.Volume]
				events := watchers.Watch("v")
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					test.events(watchers.Handler())
					synctest.Wait()
					cancel()
				}()
				_, answer, gone, err := volumes.Await(ctx, events, version("10", "uid", false), carved)
				if (answer.State == Done) != test.done || gone != test.gone {
					t.Errorf("state %v, gone %v, error %v", answer.State, gone, err)
				}
				if waits := !test.done && !test.gone; waits != errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				events.Stop()
				if len(watchers.byName) != 0 {
					t.Error("a watcher is left")
				}
			})
		})
	}
}

func TestAWaitThatIsCutOffSaysWhatItWaitedFor(t *testing.T) {
	volumes := Objects[*v1alpha1.Volume]{Kind: "volume"}
	var watchers Watchers[*v1alpha1.Volume]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for node, want := range map[string]string{"n": "waiting for node n to answer for volume v: ", "": "waiting for volume v: "} {
		_, _, _, err := volumes.Await(ctx, watchers.Watch("v"), build(gi), func(*v1alpha1.Volume) Answer { return Answer{Node: node} })
		if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestEveryWatcherOfAVolumeHearsOfIt(t *testing.T) {
	var watchers Watchers[*v1alpha1.Volume]
	a, b := watchers.Watch("v"), watchers.Watch("v")
	watchers.Handler().OnAdd(version("1", "uid", false), false)
	for _, each := range []*Watcher[*v1alpha1.Volume]{a, b} {
		if e, err := each.next(t.Context()); err != nil || e.object.Name != "v" {
			t.Errorf("got %+v, %v", e, err)
		}
	}
	a.Stop()
	watchers.Handler().OnUpdate(nil, version("2", "uid", false))
	if e, err := b.next(t.Context()); err != nil || e.object.ResourceVersion != "2" {
		t.Errorf("the other watcher got %+v, %v", e, err)
	}
}
