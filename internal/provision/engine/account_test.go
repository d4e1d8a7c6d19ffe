package engine

import (
	"testing"
	"time"
)

func TestRoomIsPromisedToAChangeUntilItIsKnownToBeTaken(t *testing.T) {
	var a Account
	promised := func(want int64) {
		t.Helper()
		if all, here, there := a.Promised(""), a.Promised("tank"), a.Promised("tank/other"); all != want || here != want || there != 0 {
			t.Errorf("%d bytes are promised, %d in its pool and %d in another, want %d", all, here, there, want)
		}
	}
	a.begin("pvc-1", running{pool: "tank", room: 8})
	promised(8)
	a.fulfil("pvc-1", 0)
	promised(8)
	a.fulfil("pvc-1", 8)
	promised(0)
	a.end("pvc-1")
	a.fulfil("pvc-1", 8)
	promised(0)
	a.begin("pvc-2", running{pool: "tank", room: 8})
	a.end("pvc-2") // it failed
	promised(0)
}

func TestAChangeCountsOnceWhenItEnds(t *testing.T) {
	var a Account
	counted := func(ended, underWay int) {
		t.Helper()
		if e, u := a.Activity(); e != ended || u != underWay || a.Busy() != (u > 0) {
			t.Errorf("%d ended and %d under way, want %d and %d; busy is %v", e, u, ended, underWay, a.Busy())
		}
	}
	counted(0, 0)
	a.begin("pvc-1", running{})
	a.begin("pvc-2", running{})
	counted(0, 2)
	a.end("pvc-1")
	a.end("pvc-1") // it has ended already
	counted(1, 1)
	a.end("pvc-2")
	counted(2, 0)
}

func TestAUnitIsStuckByTheChangeThatRunsLongest(t *testing.T) {
	var a Account
	now := time.Unix(1e9, 0)
	a.begin("pvc-1", running{since: now})
	a.begin("pvc-2", running{since: now.Add(slow)})
	later := now.Add(slow + time.Second)
	for range 64 { // in whatever order the map yields them
		if !a.Stuck(later) {
			t.Fatal("it is not stuck")
		}
	}
	a.end("pvc-1")
	if a.Stuck(later) {
		t.Error("it is stuck by a change that ended")
	}
	a.end("pvc-2")
	if a.Stuck(later) {
		t.Error("it is stuck without a change")
	}
}
