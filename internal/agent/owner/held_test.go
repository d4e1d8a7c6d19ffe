package owner

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

var errHeld = fmt.Errorf("%w: a pod has it mounted", provision.ErrInUse)

// TestTheRecordIsToldOfAPodThatHoldsAnEpochThatIsOver: the rules here only tell which chain was asked.
func TestTheRecordIsToldOfAPodThatHoldsAnEpochThatIsOver(t *testing.T) {
	over := journal.Kept{Volume: volume, Disk: theLUN, Opened: two, Closed: two, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	open := over
	open.Closed = one
	block := over
	block.Taken.Block = true
	for name, test := range map[string]struct {
		kept  journal.Kept
		paths []string // where it is mounted on the machine
		stuck bool     // the unmount takes nothing off
		asks  asking
		fails map[string]error
		told  bool
		want  error
	}{
		"the guard finds it":                           {kept: over, fails: map[string]error{"CloseEpoch": errHeld}, told: true},
		"the guard does not answer":                    {kept: over, fails: map[string]error{"CloseEpoch": errBroken}, want: errBroken},
		"the guard finds nothing":                      {kept: over},
		"the mount on the machine stays":               {kept: over, paths: []string{"/stage"}, stuck: true, told: true},
		"a pod has the device":                         {kept: block, fails: map[string]error{"Flush": errHeld}, told: true},
		"the unmount fails":                            {kept: over, paths: []string{"/stage"}, fails: map[string]error{"Unmount": errBroken}, want: errBroken},
		"the epoch is not over":                        {kept: open, paths: []string{"/stage"}, stuck: true, want: provision.ErrInUse},
		"its kubelet has ended the pod, and unstages":  {kept: over, asks: asking{unstaging: true}, fails: map[string]error{"CloseEpoch": errHeld}, want: provision.ErrInUse},
		"a kubelet asks for the volume":                {kept: over, asks: asking{wanted: true}, fails: map[string]error{"CloseEpoch": errHeld}, told: true},
		"the record cannot be written":                 {kept: over, fails: map[string]error{"CloseEpoch": errHeld, "Replace": errBroken}, told: true, want: errBroken},
		"the rules have nothing to say to the record":  {kept: over, fails: map[string]error{"CloseEpoch": errHeld}, want: provision.ErrInUse},
		"a device is held, and the rules say the same": {kept: block, fails: map[string]error{"Flush": errHeld}, want: provision.ErrInUse},
	} {
		t.Run(name, func(t *testing.T) {
			upkeep := ownership.Action{Verb: ownership.Unmount}
			if len(test.paths) == 0 && !test.kept.Taken.Block {
				upkeep.Verb = ownership.Nothing
			}
			rules := ownership.Node{Unstage: says(upkeep), Tend: says(upkeep), Held: says(ownership.Action{Verb: ownership.Wait})}
			if test.told {
				rules.Held = ownership.Chain[ownership.NodeFacts]{{Name: "tells", Decide: func(f *ownership.NodeFacts) (ownership.Action, bool) {
					return ownership.Action{Verb: ownership.Record, Next: f.Record}, true
				}}}
			}
			b := onBench(t, ofDisks, rules)
			b.world.object, b.world.kept, b.world.known = recorded(onADisk), test.kept, true
			b.world.paths, b.world.stuck = test.paths, test.stuck
			maps.Copy(b.fails, test.fails)
			_, more, err := b.decide(t.Context(), volume, &test.asks)
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, test.want)
			}
			wrote := false
			for _, effect := range b.had {
				wrote = wrote || effect == "Replace"
			}
			if wrote != test.told || err == nil && more != test.told {
				t.Errorf("the record is written: %v, more: %v, after %s", wrote, more, b.effects())
			}
		})
	}
}

func TestAVolumeWhoseFilesystemHasShutItselfDownIsTended(t *testing.T) {
	taken := journal.Kept{Volume: volume, Disk: theLUN, Opened: two, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	for name, test := range map[string]struct {
		edit func(w *playedWorld)
		want bool
		// unlike: a decision about it is told something else, or cannot be made.
		unlike bool
	}{
		"it is mounted on the machine":      {edit: func(*playedWorld) {}, want: true},
		"another volume's has":              {edit: func(w *playedWorld) { w.down = []string{"/other"} }},
		"none has":                          {edit: func(w *playedWorld) { w.down = nil }},
		"its epoch is over":                 {edit: func(w *playedWorld) { w.kept.Closed = two }, unlike: true},
		"no pod may have it":                {edit: func(w *playedWorld) { w.kept.Taken = journal.Taken{} }},
		"pods had it before the boot":       {edit: func(w *playedWorld) { w.kept.Taken.Boot = "earlier" }},
		"it is a device":                    {edit: func(w *playedWorld) { w.kept.Taken.Block = true }},
		"the mount table cannot be read":    {edit: func(w *playedWorld) { w.fails["Mounts"] = errBroken }},
		"what the node keeps is unreadable": {edit: func(w *playedWorld) { w.fails["Load"] = errBroken }, unlike: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			w := b.world
			w.kept, w.known, w.paths, w.down = taken, true, []string{"/stage", "/pod"}, []string{"/elsewhere", "/stage"}
			mine := ownership.Key{Node: "a", Epoch: two}.Raw()
			b.disks.view.Disk = ownership.Disk{Link: ownership.Attached, Registered: mine, Holder: mine, Holding: true}
			test.edit(w)
			if err := b.Watch(t.Context()); err != nil || len(b.pokes) > 0 != test.want {
				t.Errorf("tended %d times, %v", len(b.pokes), err)
			}
			if test.unlike {
				return
			}
			w.object = recorded(onADisk)
			l, err := b.gather(t.Context(), volume, &asking{})
			if err != nil || l.facts.ShutDown != test.want {
				t.Errorf("the rules are told %v, %v", l.facts.ShutDown, err)
			}
		})
	}
}
