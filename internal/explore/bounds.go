package explore

import (
	"fmt"

	"berth.dev/berth/internal/ownership"
)

// Named are bounds with a name.
type Named struct {
	Name string
	Bounds
}

// Settled is the configuration in which a path through these bounds replays.
func (n Named) Settled() Config {
	c := n.Config
	c.Eager = true
	return c
}

func (e Explored) String() string {
	return fmt.Sprintf("%d states, %d visits, %d transitions, %d brought to rest, up to %d steps deep, complete: %t",
		e.States, e.Visits, e.Transitions, e.Settled, e.Depth, e.Complete)
}

func snapshots(nodes, factor int) Config {
	return Config{Kind: ownership.Snapshots, Nodes: nodes, Factor: factor, Watchdog: true, Automatic: true}
}

func attachments(nodes int) Config {
	return Config{Kind: ownership.Attachments, Nodes: nodes, Factor: nodes, Watchdog: true, Automatic: true, Shares: nodes, Persistent: true}
}

// manual is a volume that does not fail over by itself.
func manual(c Config) Config {
	c.Automatic = false
	return c
}

// together is a disk that several nodes write at once.
func together(nodes int) Config {
	c := attachments(nodes)
	c.Factor, c.Many = 1, true
	return c
}

// SmallBounds are exhausted in the ordinary tests.
func SmallBounds() []Named {
	return []Named{
		{"a pod comes, writes and crashes", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 1, Crashes: 1, SettleEvery: 4}},
		{"two pods take turns", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 2, SettleEvery: 4}},
		{"a shared disk changes hands", Bounds{Config: attachments(2), Writes: 1, Wants: 1, PowerOffs: 1, Controllers: 1, SettleEvery: 16}},
		{"a shared disk that waits for a word", Bounds{Config: manual(attachments(2)), Writes: 1, Wants: 1, PowerOffs: 1, Approvals: 1, Controllers: 1, SettleEvery: 16}},
		{"two nodes write a disk", Bounds{Config: together(2), Wants: 2, Writes: 1, Controllers: 1, Prompt: true, SettleEvery: 16}},
		{"one replica too many", Bounds{Config: snapshots(3, 3), Factors: 1, Controllers: 2, SettleEvery: 4}},
		{"three nodes, two snapshots", Bounds{Config: snapshots(3, 3), Writes: 1, Wants: 1, Crashes: 1, Controllers: 1, SettleEvery: 16}},
	}
}

// LargeBounds take up to six minutes of a core each. A snapshot is the first, empty one, or holds a
// write; a pod is in one place at a time, and two places are a failover.
func LargeBounds() []Named {
	return []Named{
		{"three nodes, three snapshots, two crashes", Bounds{Config: snapshots(3, 3), Writes: 2, Wants: 2, Outages: 2, Controllers: 1,
			Prompt: true, SettleEvery: 256}},
		{"three nodes, two snapshots, a crash, any delays", Bounds{Config: snapshots(3, 3), Writes: 1, Wants: 2, Outages: 1, Controllers: 1,
			SettleEvery: 256}},
		{"two nodes, three snapshots, two crashes, any delays", Bounds{Config: snapshots(2, 2), Writes: 2, Wants: 2, Outages: 2, Controllers: 1,
			SettleEvery: 256}},
		{"two nodes, a backup comes back", Bounds{Config: snapshots(2, 2), Writes: 1, Wants: 2, Restores: 1, SettleEvery: 256}},
		{"a shared disk changes hands twice", Bounds{Config: attachments(2), Writes: 1, Wants: 2, PowerOffs: 1, Controllers: 1, SettleEvery: 64}},
		{"a disk of several writers that waits for a word", Bounds{Config: manual(together(2)), Wants: 1, Writes: 1, PowerOffs: 1, Approvals: 1,
			Controllers: 1, Prompt: true, SettleEvery: 64}},
		{"removals with two leaders", Bounds{Config: snapshots(3, 3), Factors: 2, Crashes: 1, Ticks: 2, Controllers: 2,
			Prompt: true, Delays: 1, SettleEvery: 256}},
	}
}

// UnfinishedBounds have never been run to their end.
func UnfinishedBounds() []Named {
	return []Named{
		{"three nodes, three snapshots, a crash, a delay", Bounds{Config: snapshots(3, 3), Writes: 2, Wants: 2, Outages: 1, Controllers: 1,
			Prompt: true, Delays: 1, SettleEvery: 256}},
		{"two nodes write a disk, and one may be shut out", Bounds{Config: manual(together(2)), Wants: 2, Writes: 1, PowerOffs: 1, Approvals: 1,
			Controllers: 1, Prompt: true, SettleEvery: 256}},
		{"a shared disk with pauses", Bounds{Config: attachments(3), Writes: 1, Wants: 2, PowerOffs: 1, Pauses: 1, Controllers: 1,
			Prompt: true, Delays: 1, SettleEvery: 256}},
	}
}
