package replica

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// moved is a reservation that was placed on another node since.
func moved(v *v1alpha1.Volume) {
	marked(v)
	on("n2")(v)
}

// notWaitedFor is an administrator's word on a volume that is being deleted.
func notWaitedFor() orphan.Lost {
	return orphan.Lost{Name: id, Pool: "vg0", Deleted: *volume(deleting).DeletionTimestamp}
}

func TestDataWhosePoolVanishesBeforeItIsDeletedIsWaitedFor(t *testing.T) {
	told := saying(ready("1Gi", "1Gi"))
	for name, tc := range map[string]struct {
		volume *v1alpha1.Volume
		given  given
		fails  error // the provisioner's error on the deletion
		state  v1alpha1.ReplicaState
		reason string
		says   string
		err    error
		again  time.Duration
	}{
		"no administrator gives the data up": {
			volume: volume(deleting, told), fails: provision.ErrPoolMissing, state: "Failed", reason: "PoolMissing", says: "kubectl berth forget n1 " + id, again: worker.RefusedDelay},
		"no administrator gives the data up, and no node has reported the data": {
			volume: volume(deleting), fails: provision.ErrPoolMissing, state: "Failed", reason: "PoolMissing", says: provision.ErrPoolMissing.Error(), again: worker.RefusedDelay},
		"an administrator says that the data is lost": {
			volume: volume(deleting, told), given: given{waived: notWaitedFor()}, fails: provision.ErrPoolMissing, state: "Gone", reason: "Removed"},
		"the administrator's word cannot be read": {
			volume: volume(deleting, told), given: given{waivedErr: errAway}, fails: provision.ErrPoolMissing, state: "Failed", reason: "ProvisionerError", says: errAway.Error(), err: errAway},
		"an administrator gives up a device that is in use": {
			volume: volume(deleting, told), given: given{waived: notWaitedFor()}, fails: provision.ErrInUse, state: "Failed", reason: "InUse", says: provision.ErrInUse.Error(), err: provision.ErrInUse},
		"an administrator gives up data of a volume that moved away": {
			volume: volume(moved, told), given: given{waived: orphan.Lost{Name: id, Pool: "vg0"}}, fails: provision.ErrPoolMissing,
			state: "Failed", reason: "PoolMissing", says: "bring the pool back", again: worker.RefusedDelay},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(tc.volume)
			n.carve(t, "")
			n.given, n.disturb = tc.given, faulty{op: memory.Delete, before: tc.fails}
			n.restart()
			if result, err := n.step(t.Context()); !errors.Is(err, tc.err) || result.RequeueAfter != tc.again {
				t.Errorf("%+v, %v; want %v and again after %s", result, err, tc.err, tc.again)
			}
			if e := n.entry(t); !sameState(e, tc.state, tc.reason) || !strings.Contains(e.Message, tc.says) || strings.Contains(e.Message, "forget") != strings.Contains(tc.says, "forget") || !n.has() {
				t.Errorf("entry %+v, data is there: %v", e, n.has())
			}
		})
	}
}

func TestDataOfWhichNoPoolTellsIsGoneOnlyWhereThatIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		change option
		fault  func(n *node)
		state  v1alpha1.ReplicaState
		reason string
		err    error
		again  time.Duration
	}{
		"an administrator gives up data of a volume that moved away": {
			change: moved, fault: func(n *node) { n.waived = orphan.Lost{Name: id, Pool: "vg0"} },
			state: "Failed", reason: "PoolMissing", again: worker.RefusedDelay},
		"the pools were not reported yet": {
			change: deleting, fault: func(n *node) { n.worker.Reported = func(string) (bool, error) { return false, errBroken } },
			state: "Ready", reason: "Carved", err: errBroken},
		"the administrator's word cannot be read": {
			change: deleting, fault: func(n *node) { n.waivedErr = errAway }, state: "Ready", reason: "Carved", err: errAway},
		"the API server is not told": {
			change: deleting, fault: func(n *node) { n.fail = func(string) error { return errAway } }, state: "Ready", reason: "Carved", err: errAway},
		"the watch is behind": {
			change: deleting, fault: func(n *node) { n.edit(func(v *v1alpha1.Volume) { v.Labels["team"] = "shop" }) },
			state: "Ready", reason: "Carved", again: worker.StaleDelay},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(volume(tc.change, saying(ready("1Gi", "1Gi"))))
			n.disks.RemovePool(vg0)
			tc.fault(n)
			if result, err := n.stepStale(t.Context()); !errors.Is(err, tc.err) || result.RequeueAfter != tc.again {
				t.Errorf("%+v, %v; want %v and again after %s", result, err, tc.err, tc.again)
			}
			if e := n.entry(t); !sameState(e, tc.state, tc.reason) {
				t.Errorf("entry %+v; want %s, %s", e, tc.state, tc.reason)
			}
		})
	}
}

func TestDataThatIsThereGoesThoughThePoolsWereNotReportedYet(t *testing.T) {
	n := newNode(volume(deleting, saying(ready("1Gi", "1Gi"))))
	n.carve(t, "ext4")
	n.worker.Reported = func(string) (bool, error) { return false, errBroken }
	if _, err := n.step(t.Context()); err != nil || n.has() || !sameState(n.entry(t), v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved) {
		t.Errorf("%v, data is there: %v, entry %+v", err, n.has(), n.entry(t))
	}
}
