package poold_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	provisionmemory "berth.dev/berth/internal/provision/memory"
)

// warning is a node with warnings for its administrator.
type warning struct {
	*provisionmemory.Provisioner

	mu       sync.Mutex
	warnings []provision.Warning
}

// Warnings is called by the server, too, when a client has just connected.
func (w *warning) Warnings() []provision.Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.warnings
}

func (w *warning) warn(warnings []provision.Warning) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = warnings
}

func TestWarningsCrossTheSocketWithAReport(t *testing.T) {
	d := newDisks()
	w := &warning{Provisioner: provisionmemory.New(d, nil), warnings: []provision.Warning{{Reason: v1alpha1.ReasonVolumeGroupOfPod, Message: "volume group evil"}}}
	path := socket(t)
	serve(t, poold.Config{Socket: path, Node: poold.NewLocal(w, memory.New(d))})
	c := connected(t, path)
	for _, want := range [][]provision.Warning{w.Warnings(), nil} {
		w.warn(want)
		if _, err := c.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Warnings()); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}
}
