package shell

import (
	"testing"
	"time"
)

// TestSchedulesThatShowedAFaultOfTheProductShowNoneAnyMore plays schedules that the exploration found, as it shrunk
// them.
func TestSchedulesThatShowedAFaultOfTheProductShowNoneAnyMore(t *testing.T) {
	for name, test := range map[string]struct {
		seed uint64
		plan plan
	}{
		// No node was a place while the pod was made, and nothing told the controllers of the guards' first renewals.
		"a pod waits for a node, and the guards renew their leases later": {44, plan{
			nodes: 2, controllers: 2, volumes: 1, shares: 2, slots: 4, calm: 1, exact: true,
			strikes: []strike{{"a/guard-2", doing{"ListStorageNode", ""}, 1}, {"b/guard-2", doing{"ListStorageNode", ""}, 1}},
		}},
		// Node a had begun epoch 3 when the record of epoch 2 came back, and a controller saw it before a had mended it.
		"an older record comes back while a pod writes": {1042, plan{
			nodes: 3, controllers: 2, volumes: 1, shares: 3, slots: 4, persistent: true, calm: 4, exact: true,
			events: []event{{what: powerOff, at: 11001 * time.Millisecond, lasts: 68 * time.Second, node: 2}, {what: restore, at: 27002 * time.Millisecond, lasts: time.Second, nth: 3}},
		}},
		// Node d had begun epoch 2 when the record came back in which it was no replica: no node was asked that knew
		// for which epoch the disk was reserved.
		"a record from before its writer comes back while the pod moves": {592, plan{
			nodes: 4, controllers: 2, volumes: 2, shares: 3, slots: 4, persistent: true, calm: 4, exact: true,
			events: []event{
				{what: podMoves, at: 15001 * time.Millisecond, lasts: 9 * time.Second, node: 3, volume: 1, flag: true, owner: true},
				{what: restore, at: 15321 * time.Millisecond, lasts: 14 * time.Second, node: 1, volume: 1, nth: 3, owner: true},
			},
		}},
		// The controller of b slept between its question and the end of the pod, which a ran by then in the next epoch.
		"a fenced node is back while a controller that is about to end its pod sleeps": {4277, plan{
			nodes: 2, controllers: 1, volumes: 2, shares: 2, slots: 4, persistent: true, calm: 20, until: 81478 * time.Millisecond, exact: true,
			events: []event{
				{what: sleepAfter, effect: "PatchNode", at: 39001 * time.Millisecond, lasts: 4 * time.Second, node: 1, volume: 1},
				{what: powerOff, at: 73659 * time.Millisecond, lasts: 2 * time.Second, nth: 1, owner: true},
			},
		}},
		// The guard of a stopped the pod's writers, and a kubelet that began anew had the volume staged again: a owned it,
		// and the pod had a dead mount.
		"a kubelet begins anew after the writers of its pod were stopped": {1127, plan{
			nodes: 2, controllers: 1, volumes: 1, shares: 2, slots: 4, calm: 20, exact: true,
			events: []event{
				{what: apiSlow, at: 13001 * time.Millisecond, lasts: 32 * time.Second, nth: 3},
				{what: kubeletDies, at: 33002 * time.Millisecond, lasts: time.Second, nth: 3},
			},
		}},
		// The controller of b saw a record from before the epoch in which the pod on a writes, and could not ask a.
		"an older record comes back to a controller that cannot ask the pod's node": {133, plan{
			nodes: 3, controllers: 2, volumes: 1, shares: 3, slots: 4, persistent: true, calm: 4, exact: true,
			events: []event{
				{what: peersCut, at: 7001 * time.Millisecond, lasts: 14 * time.Second, node: 1, nth: 1},
				{what: podMoves, at: 12002 * time.Millisecond, lasts: 32 * time.Second, nth: 3, owner: true},
				{what: restore, at: 20512 * time.Millisecond, lasts: 2 * time.Second, node: 1, nth: 1},
			},
			strikes: []strike{{"b/guard-2", doing{"GetNode", "b"}, 1}},
		}},
		// The kubelet's call took longer than an epoch is kept for a kubelet that asked: between its decisions the node's own
		// upkeep gave the epoch up that it had begun, 32 times, and no copy was part of the volume any more.
		"a pod asks for a copy while the API server is slow": {95, plan{
			nodes: 4, controllers: 2, volumes: 2, shares: 3, persistent: true, calm: 4, copies: true, loss: 30 * time.Second, exact: true,
			events: []event{
				{what: apiSlow, at: 8001 * time.Millisecond, lasts: 65 * time.Second, node: 2, volume: 1, flag: true, nth: 1},
				{what: guardDies, at: 29002 * time.Millisecond, lasts: 2 * time.Second, node: 2, volume: 1, flag: true, nth: 1, owner: true},
			},
		}},
		// Node b was deleted while its machine ran. It had the only attachment, and no pod can go there.
		"the Node that has the volume is deleted": {8, plan{
			nodes: 2, controllers: 1, volumes: 1, shares: 1, slots: 4, persistent: true, calm: 20, exact: true,
			events: []event{{what: nodeDeleted, at: 8001 * time.Millisecond, lasts: 5 * time.Second, node: 1, nth: 2, owner: true}},
		}},
		// Its machine lost its power, and no standby was there to shut it out.
		"the writer's Node is deleted before a standby is made": {2442, plan{
			nodes: 4, controllers: 1, volumes: 1, shares: 2, slots: 4, persistent: true, calm: 4, exact: true,
			events: []event{{what: nodeDeleted, at: 7001 * time.Millisecond, lasts: 15 * time.Second, node: 2, nth: 1, flag: true, owner: true}},
		}},
		// Node b shut a out, which was back soon. No pod could go to b any more, and a never said that it had stopped.
		"a fenced node is back, and the Node of its standby is deleted": {158, plan{
			nodes: 2, controllers: 2, volumes: 1, shares: 2, slots: 4, persistent: true, calm: 1, exact: true,
			events: []event{
				{what: apiCut, at: 22001 * time.Millisecond, lasts: 26 * time.Second, nth: 1, owner: true},
				{what: nodeDeleted, at: 25002 * time.Millisecond, lasts: 4 * time.Second, node: 1, nth: 2},
			},
		}},
		// The target had forgotten the session of a, whose pod kept the device open in an epoch that a had given up. The
		// backup called that epoch prepared, and no controller took the pod's mount for dead.
		"a backup calls an epoch prepared that one of several writers has given up": {489, plan{
			nodes: 2, controllers: 1, volumes: 1, shares: 2, slots: 4, persistent: true, together: true, calm: 1, exact: true,
			events: []event{
				{what: sanCut, at: 8001 * time.Millisecond, lasts: 2 * time.Second, node: 1, nth: 1, owner: true},
				{what: restore, at: 15002 * time.Millisecond, lasts: 12 * time.Second, node: 1, flag: true, owner: true},
			},
		}},
		// The backup told of b's epoch in an earlier boot, and b had promised that epoch again.
		"a backup tells of an earlier boot of one of several writers": {2697, plan{
			nodes: 2, controllers: 2, volumes: 1, shares: 2, slots: 4, persistent: true, together: true, calm: 1, exact: true,
			events: []event{
				{what: powerOff, at: 28001 * time.Millisecond, lasts: 7 * time.Second, node: 1, nth: 3},
				{what: sleep, at: 43753 * time.Millisecond, lasts: 23 * time.Second, node: 1, nth: 2, owner: true},
				{what: restore, at: 47003 * time.Millisecond, lasts: 15 * time.Second, node: 1, nth: 1, owner: true},
			},
		}},
		// A controller carried out the rules about another writer first, and ended the pod of one whose epoch the backup had
		// forgotten.
		"a backup calls one of several writers fenced that writes again": {2943, plan{
			nodes: 2, controllers: 2, volumes: 1, shares: 2, slots: 4, persistent: true, together: true, calm: 4, exact: true,
			events: []event{
				{what: powerOff, at: 9549 * time.Millisecond, lasts: time.Second, node: 1},
				{what: restore, at: 37002 * time.Millisecond, lasts: 2 * time.Second, node: 1, flag: true, nth: 3, owner: true},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, test.seed, test.plan, &mistake{})
			if w.broken() != "" {
				t.Error(shrunk(t, w))
			}
			if len(w.singles.hit) != len(test.plan.strikes) {
				t.Errorf("of the faults of the plan only %v hit", w.singles.hit)
			}
		})
	}
}
