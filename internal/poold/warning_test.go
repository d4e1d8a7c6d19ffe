package poold_test

import (
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
	warnings []provision.Warning
}

func (w *warning) Warnings() []provision.Warning { return w.warnings }

func TestWarningsCrossTheSocketWithAReport(t *testing.T) {
	d := newDisks()
	w := &warning{Provisioner: provisionmemory.New(d, nil), warnings: []provision.Warning{{Reason: v1alpha1.ReasonVolumeGroupOfPod, Message: "volume group evil"}}}
	path := socket(t)
	serve(t, poold.Config{Socket: path, Node: poold.NewLocal(w, memory.New(d))})
	c := connected(t, path)
	for _, want := range [][]provision.Warning{w.warnings, nil} {
		w.warnings = want
		if _, err := c.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Warnings()); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}
}
