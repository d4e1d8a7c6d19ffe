//go:build platform

package guesttest

import (
	"errors"

	"berth.dev/berth/internal/provision"
)

// check fails unless all is there that the steps before one promised, with its content, and
// nothing that they deleted. The step itself may have been taken, or in part.
func (n *powered) check(step int) {
	n.Helper()
	content := func(v *provision.Volume) {
		switch {
		case step > written && step < overwritten:
			n.holds(*v, 4*mib, before)
		case step > overwritten:
			n.holds(*v, 4*mib, behind)
		}
	}
	if v := n.expect(zvolID, step, zvolMade, lived+1); v != nil {
		n.grown(v, step, zvolGrown)
		content(v)
	}
	if v := n.expect(filesID, step, filesMade, filesDeleted); v != nil {
		n.checkFiles(v, step)
		content(v)
	}
	n.expectSnapshot(zvolSnapID, step, zvolTaken, zvolDropped)
	n.expectSnapshot(filesSnapID, step, filesTaken, filesDropped)
	if v := n.expect(zvolCopyID, step, zvolRestored, zvolCopyDeleted); v != nil {
		n.holds(*v, 4*mib, before)
		if step > zvolRestored {
			n.sized(v, 8)
		}
	}
	if v := n.expect(filesCopyID, step, filesRestored, filesCopyDeleted); v != nil {
		n.holds(*v, 4*mib, before)
		n.sized(v, 4)
	}
	if v := n.expect(cloneID, step, filesCloned, cloneDeleted); v != nil {
		n.holds(*v, 4*mib, behind)
		n.sized(v, 4)
	}
	n.pool()
}

func (n *powered) checkFiles(v *provision.Volume, step int) {
	n.Helper()
	if used := v.Filesystem == provision.Dataset; used != (step > inUse) && step != inUse {
		n.Errorf("%+v is recorded as in use: %v", *v, used)
	}
	n.grown(v, step, filesGrown)
}

// grown fails unless a volume has its old size before the step grows, and its new size after it.
func (n *powered) grown(v *provision.Volume, step, grows int) {
	n.Helper()
	switch {
	case step < grows:
		n.sized(v, 4)
	case step > grows:
		n.sized(v, 8)
	}
}

// reserved fails unless there is room for all of each volume.
func (n *powered) reserved() {
	n.Helper()
	for _, r := range rows(n.T) {
		if r.size == 0 || r.room < r.size {
			n.Errorf("of %d bytes there is room for %d: %s", r.size, r.room, r.name)
		}
	}
}

// expect fails if a volume is not there between the steps made and deleted, or if it is there
// before or after them. It returns the volume, or nil.
func (n *powered) expect(id string, step, made, deleted int) *provision.Volume {
	n.Helper()
	v := n.find(id)
	switch {
	case v == nil && step > made && step < deleted:
		n.Fatalf("volume %s is lost", id)
	case v != nil && (step < made || step > deleted):
		n.Fatalf("volume %+v should not be there", *v)
	}
	return v
}

func (n *powered) sized(v *provision.Volume, size int64) {
	n.Helper()
	if v.Size != size*mib {
		n.Errorf("%+v should have %d MiB", *v, size)
	}
}

func (n *powered) expectSnapshot(id string, step, taken, dropped int) {
	n.Helper()
	s, err := n.GetSnapshot(n.Context(), id)
	there := err == nil && s.Problem == "" && s.Size == 4*mib
	switch {
	case !there && !errors.Is(err, provision.ErrNotFound):
		n.Errorf("the snapshot is %+v, %v", s, err)
	case !there && step > taken && step < dropped:
		n.Errorf("snapshot %s is lost", id)
	case there && (step < taken || step > dropped):
		n.Errorf("the snapshot should not be there: %+v", s)
	}
}
