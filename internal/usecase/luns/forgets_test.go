package luns

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

// A backup from before the first mount says of a disk full of data that no node has written to it. A target that
// forgets its reservations would let the next volume's nodes read that.
func TestADiskWhoseTargetForgetsIsNotFreedByTheWordOfARecordAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		lun   *v1alpha1.LUN
		state v1alpha1.LUNState
		says  string
	}{
		"the target forgets":           {lun("a", gi, of(volume("v", ""))), v1alpha1.LUNReleased, "spec.persistent"},
		"the LUN is said to keep them": {lun("a", gi, of(volume("v", "")), persistent(true)), v1alpha1.LUNWiping, "node a wipes"},
	} {
		t.Run(name, func(t *testing.T) {
			l, holder := tc.lun, ended("a", unopened)
			f := &Facts{Holder: holder, LUNs: values(l), Volumes: values(holder), Nodes: nodes("a"), Now: now, FreshID: "fresh"}
			if l.Status = Judge(l, f); l.Status.State != v1alpha1.LUNReleased || l.Status.Wipe == nil || l.Status.Wipe.Outcome != "" {
				t.Fatalf("while the Volume is there: %+v, %+v", l.Status, l.Status.Wipe)
			}
			f.Holder, f.Volumes = nil, nil
			if l.Status = Judge(l, f); l.Status.State != tc.state || !strings.Contains(l.Status.Message, tc.says) {
				t.Errorf("afterwards: %+v", l.Status)
			}
		})
	}
}
