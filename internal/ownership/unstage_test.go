package ownership_test

import (
	"testing"

	. "berth.dev/berth/internal/ownership"
)

func TestUnstageDecides(t *testing.T) {
	prep, active := volume(owned(Preparing)), volume(owned(Active))
	sharedActive := volume(owned(Active), shared)
	closed := func(c *Copy) { c.Closed = e2 }
	dirty := func(c *Copy) { c.Dirty = true }
	rebooted := func(f *NodeFacts) { f.Boot = "boot2" }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"to close the epoch before the unmount":                 {on("a", active, with(promised(active), opened(e2)), mounted), verdict{Close, ClosingEpoch}},
		"to unmount":                                            {on("a", active, with(promised(active), opened(e2), closed), mounted), verdict{Unmount, NotWanted}},
		"to keep the last writes":                               {on("a", active, with(promised(active), opened(e2), closed, dirty)), verdict{Snapshot, KeepingLastWrites}},
		"to keep the last writes without the API":               {on("a", active, with(opened(e2), closed, dirty), unread), verdict{Snapshot, KeepingLastWrites}},
		"to close the epoch without the API":                    {on("a", active, with(promised(active), opened(e2)), mounted, unread), verdict{Close, ClosingEpoch}},
		"to unmount without the API":                            {on("a", active, with(promised(active), opened(e2), closed), mounted, unread), verdict{Unmount, NotWanted}},
		"to wait with the answer without the API":               {on("a", active, with(promised(active), opened(e2), closed), unread), verdict{Wait, RecordUnread}},
		"to be done with a volume that has no record":           {on("a", nil, with(opened(e2), closed)), verdict{Done, NotOwner}},
		"to release and keep the reservation":                   {on("a", sharedActive, with(promised(sharedActive), opened(e2), closed), holding(Key{Node: "a", Epoch: e2})), verdict{Record, Releasing}},
		"to take the reservation back before the last flush":    {on("a", sharedActive, with(promised(sharedActive), opened(e2)), attached(Key{Node: "a", Epoch: e2}), mounted), verdict{Register, SessionRenewed}},
		"to be done on a node that owns no epoch":               {on("b", active), verdict{Done, NotOwner}},
		"not to forget an epoch that the node gave up unopened": {on("b", active, with(func(c *Copy) { c.Opened, c.Closed = e1, e2 })), verdict{Done, NotOwner}},
		"to release an epoch with writes":                       {on("a", active, with(promised(active), opened(e2), closed)), verdict{Record, Releasing}},
		"to release an epoch without writes":                    {on("a", prep, with(promised(prep), closed)), verdict{Record, Releasing}},
		"to report writes that a restart lost":                  {on("a", active, with(promised(active), closed), rebooted), verdict{Record, CopyLost}},
		"to report writes that a rollback lost":                 {on("a", active, with(promised(active), opened(e2), closed, func(c *Copy) { c.Points = points(e1, 1, 2) })), verdict{Record, CopyLost}},
		"to wait after the report of the loss":                  {on("a", volume(owned(Active), entry("a", func(r *Replica) { r.Unstaged = e2 })), with(promised(active), closed)), verdict{Wait, CopyLost}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, UnstageRules.Decide(tt.facts), tt.want) })
	}
}

func TestAReleaseMovesTheRecoveryPointToTheFinalSnapshotOnlyIfSomethingWasWritten(t *testing.T) {
	closed := func(c *Copy) { c.Closed = e2; c.Points = append(c.Points, at(e2, 4)) }
	tests := map[string]struct {
		volume *Volume
		copy   []func(*Copy)
		want   uint64
	}{
		"written": {volume(owned(Active)), []func(*Copy){opened(e2), closed}, 4},
		"written, though a backup forgot the writing": {volume(owned(Preparing)), []func(*Copy){opened(e2), closed}, 4},
		"never written": {volume(owned(Preparing)), []func(*Copy){func(c *Copy) { c.Closed = e2 }}, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := UnstageRules.Decide(on("a", tt.volume, with(append(tt.copy, promised(tt.volume))...)))
			if a.Next == nil || a.Next.Primary.Phase != Released || a.Next.RecoveryPoint.Seq != tt.want {
				t.Fatalf("decided %v, record %+v", a.Verb, a.Next)
			}
		})
	}
}

func TestAReleaseAfterARestartIsNotClean(t *testing.T) {
	v := volume(owned(Active))
	f := on("a", v, with(promised(v), opened(e2), func(c *Copy) { c.Closed = e2 }), func(f *NodeFacts) { f.Boot = "boot2" })
	if next := UnstageRules.Decide(f).Next; next == nil || next.Clean {
		t.Errorf("record %+v", next)
	}
}
