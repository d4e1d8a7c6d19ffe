package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
)

var errAway = errors.New("connection refused")

// notWaitedFor is an administrator's word on a snapshot that is being deleted.
func notWaitedFor() orphan.Lost {
	return orphan.Lost{Name: id, Pool: "vg0", Deleted: *object(deleting).DeletionTimestamp}
}

func TestASnapshotWhosePoolVanishesBeforeItIsDeletedIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		change option
		given  given
		fails  error // the provisioner's error on the deletion
		state  v1alpha1.SnapshotState
		reason string
		says   string
		err    error
		again  time.Duration
	}{
		"no administrator gives the snapshot up": {
			change: deleting, fails: provision.ErrPoolMissing, state: "Failed", reason: "PoolMissing", says: "kubectl berth forget n1 " + id, again: worker.RefusedDelay},
		"an administrator says that the snapshot is lost": {
			change: deleting, given: given{waived: notWaitedFor()}, fails: provision.ErrPoolMissing, state: "Gone", reason: "Removed"},
		"the administrator's word cannot be read": {
			change: deleting, given: given{waivedErr: errAway}, fails: provision.ErrPoolMissing, state: "Failed", reason: "ProvisionerError", says: errAway.Error(), err: errAway},
		"an administrator gives up a snapshot that is in use": {
			change: deleting, given: given{waived: notWaitedFor()}, fails: provision.ErrInUse, state: "Failed", reason: "InUse", says: provision.ErrInUse.Error(), err: provision.ErrInUse},
		"an administrator gives up a snapshot that moved away": {
			change: on("n2"), given: given{waived: orphan.Lost{Name: id, Pool: "vg0"}}, fails: provision.ErrPoolMissing,
			state: "Failed", reason: "PoolMissing", says: "bring the pool back", again: worker.RefusedDelay},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object(tc.change, saying(ready())))
			n.take()
			n.given, n.disturb = tc.given, failing{tc.fails}
			n.restart()
			if result, err := n.step(); !errors.Is(err, tc.err) || result.RequeueAfter != tc.again {
				t.Errorf("%+v, %v; want %v and again after %s", result, err, tc.err, tc.again)
			}
			n.expect(tc.state, tc.reason)
			if e := n.live.Entry(here); !strings.Contains(e.Message, tc.says) || strings.Contains(e.Message, "forget") != strings.Contains(tc.says, "forget") || e.Taken == nil || !n.has() {
				t.Errorf("entry %+v, it is there: %v", e, n.has())
			}
		})
	}
}

func TestASnapshotOfWhichNoPoolTellsIsGoneOnlyWhereThatIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		change option
		fault  func(n *node)
		state  v1alpha1.SnapshotState
		reason string
		err    error
		again  time.Duration
	}{
		"an administrator gives up a snapshot that moved away": {
			change: on("n2"), fault: func(n *node) { n.waived = orphan.Lost{Name: id, Pool: "vg0"} },
			state: "Failed", reason: "PoolMissing", again: worker.RefusedDelay},
		"the pools were not reported yet": {
			change: deleting, fault: func(n *node) { n.worker.Reported = func(string) (bool, error) { return false, errBroken } },
			state: "Ready", reason: "Taken", err: errBroken},
		"the administrator's word cannot be read": {
			change: deleting, fault: func(n *node) { n.waivedErr = errAway }, state: "Ready", reason: "Taken", err: errAway},
		"the API server is not told": {
			change: deleting, fault: func(n *node) { n.fail = func(string) error { return errAway } }, state: "Ready", reason: "Taken", err: errAway},
		"the watch is behind": {
			change: deleting, fault: func(n *node) { n.edit(func(s *v1alpha1.Snapshot) { s.Labels["team"] = "shop" }) },
			state: "Ready", reason: "Taken", again: worker.StaleDelay},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object(tc.change, saying(ready())))
			n.disks.RemovePool(vg0)
			tc.fault(n)
			if result, err := n.stepStale(); !errors.Is(err, tc.err) || result.RequeueAfter != tc.again {
				t.Errorf("%+v, %v; want %v and again after %s", result, err, tc.err, tc.again)
			}
			n.expect(tc.state, tc.reason)
		})
	}
}

func TestASnapshotThatIsThereGoesThoughThePoolsWereNotReportedYet(t *testing.T) {
	n := newNode(t, object(deleting, saying(ready())))
	n.take()
	n.worker.Reported = func(string) (bool, error) { return false, errBroken }
	if _, err := n.step(); err != nil || n.has() {
		t.Errorf("%v, it is there: %v", err, n.has())
	}
	n.expect(v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved)
}

func TestASnapshotThatWasNeverTakenOrIsGoneNeedsNoPool(t *testing.T) {
	for name, change := range map[string]option{
		"the node has not reported the snapshot": func(*v1alpha1.Snapshot) {},
		"the node could not take the snapshot":   saying(failed(v1alpha1.ReasonPoolMissing)),
		"the node had removed the snapshot":      saying(took(v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved)),
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, object(deleting, change))
			n.disks.RemovePool(vg0)
			n.worker.Listed = func(string) bool { return true } // a moment ago
			n.settle()
			n.expect(v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved)
		})
	}
}

func TestASnapshotThatIsWantedIsNotLookedForAgainAndAgain(t *testing.T) {
	n := newNode(t, object(saying(ready())))
	n.disks.RemovePool(vg0)
	if result, err := n.step(); err != nil || !result.IsZero() { // the next report of the pools brings it back
		t.Errorf("%+v, %v", result, err)
	}
	n.expect(v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing)
}
