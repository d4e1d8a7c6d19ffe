package usecase

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
)

var errBroken = errors.New("it cannot be read")

// broken is a client that cannot read.
type broken struct{ client.Client }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

// volumesBy returns the volumes of a cache and an API server.
func volumesBy(cached client.Client, live client.Reader) *Objects[*v1alpha1.Volume] {
	return &Objects[*v1alpha1.Volume]{
		Kind: "volume", New: func() *v1alpha1.Volume { return &v1alpha1.Volume{} },
		Client: cached, Live: live, Watchers: &Watchers[*v1alpha1.Volume]{},
	}
}

// A call that takes a volume for missing would make another one, or leave its data behind.
func TestAnUnreadableObjectIsNotTakenForMissing(t *testing.T) {
	s := lagging.New(t, build(gi))
	for name, call := range map[string]func() error{
		"get": func() error { _, err := volumesBy(s.Client(), broken{}).Get(t.Context(), "v"); return err },
		"find, while the cache is broken": func() error {
			_, err := volumesBy(broken{s.Client()}, s.Live()).Find(t.Context(), "v")
			return err
		},
		"find, while the API server is broken": func() error {
			_, err := volumesBy(s.Client(), broken{}).Find(t.Context(), "v")
			return err
		},
		"delete":                            func() error { return volumesBy(s.Client(), broken{}).Delete(t.Context(), "v", carved) },
		"ask for the features of the agent": func() error { return MayCopy(t.Context(), broken{}, "n", "vg0") },
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(); !errors.Is(err, errBroken) {
				t.Errorf("got %v, want %v", err, errBroken)
			}
		})
	}
}

func TestADeletionLeavesNoWatcher(t *testing.T) {
	s := lagging.New(t)
	volumes := volumesBy(s.Client(), s.Live())
	if err := volumes.Delete(t.Context(), "v", carved); err != nil {
		t.Error(err)
	}
	if len(volumes.Watchers.byName) != 0 {
		t.Error("a watcher is left")
	}
}
