package owner

import (
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
)

func TestWhyAnAttachFailedIsToldUntilTheDiskIsAttached(t *testing.T) {
	failed := shared.View{Disk: ownership.Disk{Link: ownership.AttachFailed}, Problem: "the disk is another one"}
	detached := shared.View{Disk: ownership.Disk{Link: ownership.Detached}}
	attached := shared.View{Disk: ownership.Disk{Link: ownership.Attached}}
	h := &hint{}
	for i, step := range []struct {
		sees  shared.View
		why   string
		fresh bool
	}{
		{detached, "", false},
		{failed, failed.Problem, true},
		{detached, failed.Problem, false}, // cleaned up
		{failed, failed.Problem, false},
		{attached, "", false},
		{detached, "", false},
	} {
		fresh, why := h.learn(&step.sees)
		if fresh != step.fresh || why == nil != (step.why == "") || why != nil && why.Error() != step.why {
			t.Errorf("step %d: %v, fresh %v", i, why, fresh)
		}
	}
}
