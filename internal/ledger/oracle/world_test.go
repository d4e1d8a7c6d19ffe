package oracle

import (
	"fmt"
	"slices"
	"strconv"

	"berth.dev/berth/internal/ledger"
)

// The world is a small cluster: the objects of the API server, the real contents of
// the pools, and for each scheduler how many changes have arrived there.
type world struct {
	revision int64
	next     int    // for names
	newest   string // claim
	// calm worlds have one scheduler, nothing foreign, and no delay.
	calm bool

	classes map[string]*ledger.Class
	nodes   []*node
	volumes map[string]*ledger.VolumeObject
	claims  map[string]*claim
	pvs     map[string]*ledger.PVObject
	pods    map[string]*pod

	log        [kinds][]event
	schedulers []*scheduler
	trace      func(format string, args ...any)
}

// node is a node with the real contents of its pools.
type node struct {
	name, domain string
	pools        []*pool
}

type pool struct {
	ledger.Pool
	// carved and inline are the volumes that really exist, with the room that they
	// take.
	carved map[string]int64
	inline map[ledger.Owner]int64
}

type claim struct{ ledger.ClaimObject }

// factors are how many replicas claims have, in turn.
var factors = []int{1, 2, 1, 3, 1, 2, 1, 1}

// number of an object, which is the end of its name.
func number(name string) int {
	n, _ := strconv.Atoi(name[1:])
	return n
}

// demand of a claim.
func demand(c ledger.ClaimObject) ledger.Demand {
	return ledger.Demand{
		Owner: ledger.Claim(c.UID), Class: c.Class, Bytes: c.Requested, Factor: factors[number(c.UID)%len(factors)], Yields: c.Class == "lun",
	}
}

type pod struct {
	ledger.PodObject
	claims []string
	gone   bool
	// cycle is whether a scheduler works on it.
	cycle bool
}

// kind of object; each has its own watch, and so its own pace.
type kind int

const (
	reports kind = iota
	classes
	volumes
	claims
	pvs
	pods
	kinds
)

var kindNames = [kinds]string{"StorageNode", "PoolClass", "Volume", "PersistentVolumeClaim", "PersistentVolume", "Pod"}

// event is a change of one object; object is nil when it is gone.
type event struct {
	kind     kind
	key      string
	object   any
	revision int64
}

const gib = int64(1) << 30

func newWorld(schedulers int) *world {
	w := &world{
		revision: 100, classes: map[string]*ledger.Class{}, volumes: map[string]*ledger.VolumeObject{},
		claims: map[string]*claim{}, pvs: map[string]*ledger.PVObject{}, pods: map[string]*pod{},
		trace: func(string, ...any) {},
	}
	for _, c := range []ledger.Class{
		{Name: "fast", Spare: 2 * gib},
		{Name: "bulk", SparePercent: 5},
		{Name: "raid", Layout: ledger.Layout{Mirrors: 2, Metadata: 1}, Spare: gib},
		{Name: "thin", Overprovision: 200, MaxFill: 90, Spare: gib},
		{Name: "disk", Media: "ssd"},
		{Name: "lun"},
	} {
		c.InlineNamespaces = []string{"shop"}
		w.classes[c.Name] = &c
		w.emit(classes, c.Name, c)
	}
	thick := []string{"fast", "bulk", "raid"}
	w.nodes = []*node{
		{"n1", "east", []*pool{makePool("vg0", ledger.Thick, 20*gib, thick...), makePool("vg1", ledger.Thick, 12*gib, "fast"), makePool("thin0", ledger.Thin, 10*gib, "thin")}},
		{"n2", "west", []*pool{makePool("sdb", ledger.Device, 8*gib, "disk"), makePool("sdc", ledger.Device, 4*gib, "disk"), makePool("slots", ledger.Slots, 2, "lun"), makePool("vg0", ledger.Thick, 16*gib, thick...)}},
		{"n3", "west", []*pool{makePool("slots", ledger.Slots, 3, "lun"), makePool("thin0", ledger.Thin, 8*gib, "thin"), makePool("vg0", ledger.Thick, 18*gib, thick...)}},
	}
	for range schedulers {
		w.schedulers = append(w.schedulers, newScheduler())
	}
	for i := range w.nodes {
		w.report(i, false, 1)
	}
	return w
}

func makePool(name string, k ledger.Kind, total int64, classes ...string) *pool {
	p := &pool{carved: map[string]int64{}, inline: map[ledger.Owner]int64{}}
	p.Pool = ledger.Pool{Name: name, Kind: k, Total: total, Unit: 4 << 20, Media: "ssd", Classes: classes}
	if k == ledger.Slots || k == ledger.Device {
		p.Unit = 1
	}
	return p
}

// emit puts a change into the log.
func (w *world) emit(k kind, key string, object any) {
	w.revision++
	w.log[k] = append(w.log[k], event{k, key, object, w.revision})
}

func (w *world) emitVolume(v *ledger.VolumeObject) {
	o := *v
	o.Replicas = slices.Clone(v.Replicas)
	o.Revision = w.revision + 1
	w.emit(volumes, v.Name, o)
}

func (w *world) emitClaim(c *claim) { w.emit(claims, c.UID, c.ClaimObject) }

func (w *world) emitPod(p *pod) { w.emit(pods, p.UID, p.PodObject) }

func (w *world) emitPV(v *ledger.PVObject) { w.emit(pvs, v.Name, *v) }

func (w *world) name(prefix string) string {
	w.next++
	return fmt.Sprintf("%s%d", prefix, w.next)
}

// choose picks the i-th of the things that pass, in the order of their names.
func choose[T any](from map[string]T, i byte, pass func(T) bool) (T, bool) {
	var fitting []T
	for _, name := range sortedKeys(from) {
		if pass(from[name]) {
			fitting = append(fitting, from[name])
		}
	}
	if len(fitting) == 0 {
		var none T
		return none, false
	}
	return fitting[int(i)%len(fitting)], true
}

func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (n *node) pool(name string) *pool {
	for _, p := range n.pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// serving picks a pool of the node that serves the class.
func (n *node) serving(class string, i byte) *pool {
	var fitting []*pool
	for _, p := range n.pools {
		if slices.Contains(p.Classes, class) {
			fitting = append(fitting, p)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	return fitting[int(i)%len(fitting)]
}

// carve really makes, or grows, a volume: the node is the final authority.
func (w *world) carve(p *pool, volume, class string, bytes int64) bool {
	c, known := w.classes[class]
	if !known {
		return false
	}
	use := p.Foreign
	for name, taken := range p.carved {
		if name != volume {
			use += taken
		}
	}
	for _, taken := range p.inline {
		use += taken
	}
	top, open := limit(&p.Pool, *c)
	need := charge(&p.Pool, *c, bytes)
	if !open || use+need > top {
		return false
	}
	p.carved[volume] = need
	return true
}
