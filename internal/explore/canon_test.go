package explore

import (
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// worlds plays the beginnings of random schedules and shows the resulting worlds.
func worlds(schedules uint64, show func(w *World)) {
	for seed := range schedules {
		s := NewSource(seed)
		w := New(s.Config(), Berth())
		var last Event
		worked := false
		for k := range Steps {
			last = s.Event(w, last, worked)
			worked = w.Apply(last)
			if k%10 == 9 {
				show(w)
			}
		}
	}
}

var horizons = []horizon{
	{renames: true, newest: 100},
	{renames: true, newest: 100, time: true},
	{renames: true, newest: 100, backups: true, restore: true},
	{renames: true, newest: 100, backups: true, time: true},
}

// shuffles are the ways to exchange n nodes.
func shuffles(n int) (out [][maxNodes]int) {
	var try func(k int, to [maxNodes]int)
	try = func(k int, to [maxNodes]int) {
		if k == n {
			out = append(out, to)
			return
		}
		for j := k; j < n; j++ {
			to[k], to[j] = to[j], to[k]
			try(k+1, to)
			to[k], to[j] = to[j], to[k]
		}
	}
	try(0, [maxNodes]int{0, 1, 2, 3})
	return out
}

func TestARenamedWorldHasTheSameKey(t *testing.T) {
	seen := 0
	worlds(30, func(w *World) {
		ways := shuffles(w.cfg.Nodes)
		image := newRenaming(ways[seen%len(ways)]).world(w)
		for _, h := range horizons {
			a, b := canon{ahead: h}, canon{ahead: h}
			if a.key(w) != b.key(image) {
				t.Fatalf("world %d with %+v, exchanged %v: another key\n%x\n%x", seen, h, ways[seen%len(ways)], a.best, b.best)
			}
		}
		seen++
	})
}

var other = lineage.Epoch{Number: 9, ID: "other"}

// edits change one thing at a time that a rule or a check reads.
var edits = map[string]func(w *World){
	"a lease that lapsed":              func(w *World) { w.nodes[1].lapsed = true },
	"a node that hears no answer":      func(w *World) { w.nodes[1].deaf = true },
	"a machine that is off":            func(w *World) { w.nodes[1].up = false },
	"a paused machine":                 func(w *World) { w.nodes[1].paused = true },
	"an agent that is down":            func(w *World) { w.nodes[1].agent = false },
	"a mounted volume":                 func(w *World) { w.nodes[1].mounted = true },
	"a volume that is not unstaged":    func(w *World) { w.nodes[1].stopped = true },
	"a machine that has just woken":    func(w *World) { w.nodes[1].woke = true },
	"a pod":                            func(w *World) { w.nodes[1].wanted = true },
	"a mount that the kubelet got":     func(w *World) { w.nodes[1].served = true },
	"a cordon":                         func(w *World) { w.nodes[1].cordoned = true },
	"a taint":                          func(w *World) { w.nodes[1].tainted = true },
	"a Node that is deleted":           func(w *World) { w.nodes[1].deleted = true },
	"a lease that names fewer nodes":   func(w *World) { w.nodes[1].members = 3 },
	"a renewal without an answer":      func(w *World) { w.nodes[1].sets |= 1 << 3 },
	"a missing copy":                   func(w *World) { w.nodes[1].copy.Exists = false },
	"unsaved writes":                   func(w *World) { w.nodes[1].copy.Dirty = true },
	"a condemned copy":                 func(w *World) { w.nodes[1].copy.Condemned = true },
	"a copy in quarantine":             func(w *World) { w.nodes[1].copy.Quarantined = true },
	"another promise":                  func(w *World) { w.nodes[1].copy.Promise.Epoch = other },
	"an opened epoch":                  func(w *World) { w.nodes[1].copy.Opened = other },
	"a closed epoch":                   func(w *World) { w.nodes[1].copy.Closed = w.server.current.volume.Epoch },
	"a branch put aside":               func(w *World) { w.nodes[1].branches = []*content{w.nodes[1].head} },
	"a preserved tip":                  func(w *World) { w.nodes[1].copy.Preserved = w.nodes[1].copy.Tip() },
	"other data":                       func(w *World) { w.nodes[1].head = w.nodes[1].head.add(7, 7) },
	"other data in a snapshot":         func(w *World) { w.nodes[1].data = []*content{w.nodes[1].head.add(7, 7)} },
	"a snapshot less":                  func(w *World) { w.nodes[1].copy.Points, w.nodes[1].data = nil, nil },
	"a hold":                           func(w *World) { w.nodes[1].copy.Holds = hold(w) },
	"a power record about the primary": func(w *World) { w.nodes[0].poweroff = w.nodes[0].boot },
	"a decision":                       func(w *World) { w.nodes[1].pending = &pending{action: ownership.Action{Verb: ownership.Mount}} },
	"a controller's decision":          func(w *World) { w.ctl[0].pending = decision(w, w.server.current) },
	"a cut link":                       func(w *World) { w.faults().link(0, 1, false) },
	"a node without the API":           func(w *World) { w.faults().link(1, api, false) },
	"an API server that is down":       func(w *World) { w.server.down = true },
	"a stream":                         func(w *World) { w.streams = []stream{{to: 1, header: ownership.Stream{Target: w.nodes[0].copy.Tip()}}} },
	"a lost acknowledgement":           func(w *World) { w.truth.last = nil },
	"another true epoch":               func(w *World) { w.truth.epoch = other },
	"an open true epoch":               func(w *World) { w.truth.open = true },
	"an attachment that was ended":     func(w *World) { w.truth.forsaken = 1 },
	"a restored backup":                func(w *World) { w.truth.restored = true },
	"another factor":                   record(func(v *ownership.Volume) { v.Factor = 2 }),
	"a volume that goes":               record(func(v *ownership.Volume) { v.Deleting = true }),
	"another phase":                    record(func(v *ownership.Volume) { v.Primary.Phase = ownership.Active }),
	"another primary":                  record(func(v *ownership.Volume) { v.Primary.Node = "b" }),
	"another boot of the primary":      record(func(v *ownership.Volume) { v.Primary.Boot = "boot0" }),
	"another recovery point":           record(func(v *ownership.Volume) { v.RecoveryPoint.Seq++ }),
	"an approved snapshot":             record(func(v *ownership.Volume) { v.Failover.Approved = v.RecoveryPoint }),
	"a fence request":                  record(func(v *ownership.Volume) { v.FenceRequest.Executor = "b" }),
	"another state of a replica":       record(func(v *ownership.Volume) { v.Replicas[1].State = ownership.Lagging }),
	"another reported point":           record(func(v *ownership.Volume) { v.Replicas[1].Point = lineage.Point{} }),
	"an epoch that a node gave up":     record(func(v *ownership.Volume) { v.Replicas[0].Unstaged = v.Epoch }),
	"an epoch that a node shut out":    record(func(v *ownership.Volume) { v.Replicas[1].Fenced = v.Epoch }),
}

// diskEdits do the same to a world with a shared disk.
var diskEdits = map[string]func(w *World){
	"a held reservation":                      func(w *World) { w.disk.holder = ownership.Key{Node: "a", Epoch: other} },
	"a reservation of a session that is over": func(w *World) { w.disk.at, w.disk.current = 1, false },
	"a holder's session that lives":           func(w *World) { w.disk.at, w.disk.current = 1, true },
	"a registration":                          func(w *World) { w.disk.keys[1] = ownership.Key{Node: "b", Epoch: other} },
	"a detached disk":                         func(w *World) { w.disk.links[1] = ownership.Detached },
	"an attach under way":                     func(w *World) { w.disk.links[1] = ownership.Attaching },
	"an attach that failed":                   func(w *World) { w.disk.links[1] = ownership.AttachFailed },
	"a slot that is taken":                    func(w *World) { w.slots.taken = 2 },
	"a primary that waits for a slot":         func(w *World) { w.slots.waiting = 2 },
	"a mount that ended badly":                func(w *World) { w.truth.unclean = true },
	"a target that forgot":                    func(w *World) { w.truth.forgot = true },
	"a mount that ended well":                 func(w *World) { w.nodes[1].copy.Opened = other; w.nodes[1].copy.Flushed = other },
	"a recorded clean end":                    record(func(v *ownership.Volume) { v.Clean = false }),
	"a failed try":                            record(func(v *ownership.Volume) { v.Replicas[1].Tries = 1 }),
	"a time to try again":                     record(func(v *ownership.Volume) { v.Replicas[1].RetryAt = time.Unix(9, 0) }),
	"a time to detach all":                    record(func(v *ownership.Volume) { v.ExpireAt = time.Unix(9, 0) }),
}

// manyEdits do the same to a world in which several nodes write.
var manyEdits = map[string]func(w *World){
	"a registration of a session that is over": func(w *World) { w.disk.old[1] = ownership.Key{Node: "b", Epoch: other} },
	"a reservation for one node":               func(w *World) { w.disk.registrants = false },
	"a target that lost its reservation":       func(w *World) { w.truth.cleared = true },
	"an epoch that was released":               func(w *World) { w.truth.released = []lineage.Epoch{w.nodes[1].copy.Opened} },
	"no other writer":                          record(func(v *ownership.Volume) { v.Writers = nil }),
	"a standby that shut another writer out":   record(func(v *ownership.Volume) { v.Replicas[0].Fenced = other }),
	"another writer's phase":                   changedWriter(func(o *ownership.Writer) { o.Primary.Phase = ownership.Fenced }),
	"another writer's boot":                    changedWriter(func(o *ownership.Writer) { o.Primary.Boot = "boot7" }),
	"another writer's epoch":                   changedWriter(func(o *ownership.Writer) { o.Epoch.Number++ }),
	"a request to shut another writer out": changedWriter(func(o *ownership.Writer) {
		o.FenceRequest = ownership.FenceRequest{Executor: "c", Epoch: o.Epoch}
	}),
	"a key to register with an epoch": func(w *World) {
		w.nodes[1].pending = &pending{action: ownership.Action{Verb: ownership.Open, Key: ownership.Key{Node: "b", Epoch: other}}}
	},
}

var writerB = ownership.Writer{Primary: ownership.Primary{Node: "b", Boot: "boot1", Phase: ownership.Active}, Epoch: other}

func changedWriter(edit func(*ownership.Writer)) func(*World) {
	o := writerB
	edit(&o)
	return record(func(v *ownership.Volume) { v.Writers = []ownership.Writer{o} })
}

// TestWorldsThatDifferHaveDifferentKeys changes one thing at a time that a rule
// or a check reads.
func TestWorldsThatDifferHaveDifferentKeys(t *testing.T) {
	differ(t, snapshots(3, 3), edits)
	differ(t, attachments(3), diskEdits)
	differ(t, together(3), manyEdits)
}

func differ(t *testing.T, cfg Config, edits map[string]func(w *World)) {
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			w := New(cfg, Berth())
			w.nodes[0].wanted = true
			record(func(v *ownership.Volume) {
				v.Primary = ownership.Primary{Node: "a", Boot: "boot1", Phase: ownership.Preparing}
			})(w)
			if cfg.Many {
				changedWriter(func(*ownership.Writer) {})(w)
			}
			changed := *w
			edit(&changed)
			c := canon{ahead: horizons[0]}
			if c.key(w) == c.key(&changed) {
				t.Error("it makes no difference")
			}
		})
	}
}

func record(edit func(*ownership.Volume)) func(*World) {
	return func(w *World) {
		v := changed(w.server.current.volume, edit)
		w.server.current = &version{volume: v, rv: w.server.current.rv}
	}
}

func hold(w *World) []ownership.Hold {
	return []ownership.Hold{{For: "a", Point: w.nodes[1].copy.Tip(), Until: w.clock().Add(time.Hour)}}
}

func decision(w *World, read *version) *pending {
	return &pending{read: read, action: ownership.Action{Verb: ownership.Record, Next: w.server.current.volume}}
}
