package zfs

import (
	"testing"
	"time"
)

func TestRoomIsHeldForAChangeUntilItIsKnownToBeTaken(t *testing.T) {
	var z zpool
	held := func(want int64) {
		t.Helper()
		if all, here, there := z.held(""), z.held("tank"), z.held("tank/other"); all != want || here != want || there != 0 {
			t.Errorf("%d bytes are held, %d in its pool and %d in another, want %d", all, here, there, want)
		}
	}
	steps := []step{{}, {takes: 8, parent: "tank"}, {}}
	z.begin("pvc-1", time.Time{}, steps)
	held(8)
	z.fulfil("pvc-1", steps[0])
	held(8)
	z.fulfil("pvc-1", steps[1])
	held(0)
	z.end("pvc-1")
	z.fulfil("pvc-1", steps[1])
	held(0)
	z.begin("pvc-2", time.Time{}, steps)
	z.end("pvc-2") // it failed
	held(0)
}

func TestAZpoolIsStuckByTheChangeThatRunsLongest(t *testing.T) {
	var z zpool
	now := time.Unix(1e9, 0)
	z.begin("pvc-1", now, nil)
	z.begin("pvc-2", now.Add(slowChange), nil)
	later := now.Add(slowChange + time.Second)
	if !z.stuck(later) {
		t.Error("it is not stuck")
	}
	z.end("pvc-1")
	if z.stuck(later) {
		t.Error("it is stuck by a change that ended")
	}
}
