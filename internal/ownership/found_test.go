package ownership

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
)

func TestTheFirstSnapshotIsMadeOnceAndByTheNodeThatIsNamed(t *testing.T) {
	later := lineage.Point{Epoch: lineage.Epoch{Number: 2, ID: "later"}, Seq: 2}
	tests := map[string]struct {
		change func(f *NodeFacts)
		want   Verb
	}{
		"an empty volume becomes a copy":  {func(*NodeFacts) {}, Persist},
		"a copy gives the first epoch up": {func(f *NodeFacts) { f.Copy.Exists = true }, Close},
		"a copy without a point gets its first": {func(f *NodeFacts) {
			f.Copy.Exists, f.Copy.Closed = true, f.Record.Epoch
		}, Snapshot},
		"another node fetches it":                              {func(f *NodeFacts) { f.Me = "b" }, Nothing},
		"there is no volume yet":                               {func(f *NodeFacts) { f.Copy.Size = 0 }, Nothing},
		"the volume was taken in an earlier boot":              {func(f *NodeFacts) { f.Record.Primary.Boot = "boot" }, Nothing},
		"the volume is deleted":                                {func(f *NodeFacts) { f.Record.Deleting = true }, Nothing},
		"the copy was opened once":                             {func(f *NodeFacts) { f.Copy.Opened = later.Epoch }, Nothing},
		"the node had a copy, which is lost":                   {func(f *NodeFacts) { f.Record.entry("a").State = Lost }, Nothing},
		"another node has reported data":                       {func(f *NodeFacts) { f.Record.entry("b").Point = later }, Nothing},
		"the node fetches the first snapshot again":            {func(f *NodeFacts) { f.Record.entry("a").State = Syncing }, Persist},
		"a node that has nothing answers":                      {func(f *NodeFacts) { f.Peers = []Peer{{Node: "b"}} }, Persist},
		"another node answers that it took the volume":         {func(f *NodeFacts) { f.Peers = []Peer{{Node: "b", Copy: Copy{Opened: later.Epoch}}} }, Nothing},
		"the copy has the first snapshot":                      {func(f *NodeFacts) { f.Copy.Exists, f.Copy.Points = true, []lineage.Point{f.Record.RecoveryPoint} }, Nothing},
		"the volume is in a later epoch":                       {func(f *NodeFacts) { f.Record.Lineage = append(f.Record.Lineage, lineage.Branch{Epoch: later.Epoch}) }, Nothing},
		"it is mounted":                                        {func(f *NodeFacts) { f.Mounted = true }, Nothing},
		"a shared disk has no snapshots":                       {func(f *NodeFacts) { f.Record.Kind = Attachments }, Nothing},
		"a volume that no other node can own has no snapshots": {func(f *NodeFacts) { f.Record.Kind = OneCopy }, Nothing},
		"another node answers that it has data": {func(f *NodeFacts) {
			f.Peers = []Peer{{Node: "b", Copy: Copy{Exists: true, Points: []lineage.Point{later}}}}
		}, Nothing},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &NodeFacts{Me: "a", Record: Begin(Volume{Kind: Snapshots, Factor: 2}, "a", []string{"b", "a"}, "first"), Copy: Copy{Size: 1}}
			tt.change(f)
			got, _ := found(f)
			if got.Verb != tt.want || got.Verb == Snapshot && got.To != f.Record.RecoveryPoint {
				t.Errorf("it decides to %v %v: %s", got.Verb, got.To, got.Message())
			}
		})
	}
}

func TestAVolumeBeginsWithAPlaceOnEachNode(t *testing.T) {
	v := Begin(Volume{Kind: Snapshots, Factor: 2}, "a", []string{"b", "a"}, "first")
	if want := []Replica{{Node: "a"}, {Node: "b"}}; !slices.Equal(v.Replicas, want) {
		t.Errorf("the entries are %+v", v.Replicas)
	}
}

func TestThreeSnapshotsComeWithinTheLossThatIsAllowed(t *testing.T) {
	for loss, want := range map[time.Duration]time.Duration{
		0: time.Minute, time.Second: 10 * time.Second, time.Minute: 20 * time.Second, time.Hour: time.Minute,
	} {
		if got := (Failover{MaxDataLoss: loss}).Interval(); got != want {
			t.Errorf("with a loss of %v the interval is %v, want %v", loss, got, want)
		}
	}
}
