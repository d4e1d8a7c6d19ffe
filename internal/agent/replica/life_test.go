package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/decide/replica"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// life is the life of one volume: its object may be set back to an older state at any
// moment, while the data on the node stays.
type life struct {
	*node
	t      *testing.T
	random *rand.Rand
	kind   []option // Block or not
	// bound is whether a PersistentVolume refers to the volume; a part of the backups.
	bound   bool
	backups []backup
	// precious is whether the node has data of a user that the user has not given up.
	precious bool
	story    []string
}

type backup struct {
	volume *v1alpha1.Volume // nil for none
	bound  bool
}

// moves are the possible next events; each does nothing where it cannot happen. The
// controller's moves follow its own rules, in packages volumes and upkeep.
var moves = map[string]func(*life, *v1alpha1.Volume){
	"reserve": func(l *life, v *v1alpha1.Volume) {
		if v == nil {
			l.put(volume(append(l.kind, marked, in(l.pool()))...))
		}
	},
	"create": func(l *life, v *v1alpha1.Volume) {
		if v == nil {
			l.put(volume(append(l.kind, in(l.pool()))...))
		}
	},
	"publish": func(l *life, v *v1alpha1.Volume) {
		if usable(v) || v != nil && v.DeletionTimestamp.IsZero() && v.Wish("n2") != nil {
			l.bound = true
			l.edit(func(v *v1alpha1.Volume) { v.Annotations = nil })
		}
	},
	"use": func(l *life, v *v1alpha1.Volume) {
		if !usable(v) || !l.bound || v.Reserved() || !l.there() {
			return
		}
		format := string(v.Spec.FSType)
		if v.Spec.VolumeMode == v1alpha1.Block {
			format = provision.Raw
		}
		if _, err := memory.New(l.disks, nil).Format(l.t.Context(), provision.FormatRequest{ID: id, Filesystem: format}); err != nil {
			l.t.Fatal(err)
		}
		l.disks.Write(id, "precious")
		l.precious = true
	},
	"move": func(l *life, v *v1alpha1.Volume) {
		if v != nil && v.DeletionTimestamp.IsZero() && v.Found() == "" && !l.bound {
			l.edit(on("n2"))
		}
	},
	"collect": func(l *life, v *v1alpha1.Volume) {
		if v != nil && v.Reserved() && v.Found() == "" {
			l.edit(deleting)
		}
	},
	"delete": func(l *life, v *v1alpha1.Volume) {
		if v != nil && l.bound && v.DeletionTimestamp.IsZero() {
			l.edit(deleting)
			if usable(v) { // a user who deletes a claim that has its data means that data
				l.precious = false
			}
		}
	},
	"let go": func(l *life, v *v1alpha1.Volume) {
		if v != nil && !v.DeletionTimestamp.IsZero() && (v.Entry(here) == nil && v.Wish(here) == nil || replica.Kind.Settled(placed.Look(v, here, replica.Facts{}))) {
			l.drop()
			l.bound = false
		}
	},
	"restart": func(l *life, _ *v1alpha1.Volume) { l.again() },
	"back up": func(l *life, v *v1alpha1.Volume) { l.backups = append(l.backups, backup{v, l.bound}) },
	"restore": func(l *life, _ *v1alpha1.Volume) {
		b := backup{}
		if len(l.backups) > 0 {
			b = l.backups[l.random.IntN(len(l.backups))]
		}
		if l.drop(); b.volume != nil {
			l.put(b.volume)
		}
		l.bound = b.bound
	},
}

func usable(v *v1alpha1.Volume) bool {
	return v != nil && v.DeletionTimestamp.IsZero() && v.Wish(here) != nil && v.Entry(here) != nil && v.Entry(here).Ready
}

func (l *life) pool() string { return []string{"vg0", "vg1"}[l.random.IntN(2)] }

// again restarts the agent.
func (l *life) again() {
	l.restart()
	l.worker.Listed = func(string) bool { return true } // in any pool
}

// there says whether the volume is in a pool of the node.
func (l *life) there() bool {
	_, err := memory.New(l.disks, nil).Get(l.t.Context(), id)
	return err == nil
}

// live lets one event happen, and most times the node react.
func (l *life) live(names []string) {
	name := names[l.random.IntN(len(names))]
	l.story = append(l.story, name)
	moves[name](l, l.get())
	if l.random.IntN(4) > 0 {
		l.story = append(l.story, "the node acts")
		l.rest(l.t)
	}
	if l.precious && l.disks.Read(id) != "precious" {
		l.t.Fatalf("data was destroyed that nobody let go: %v; the volume is %+v", l.story, l.get())
	}
}

func TestAnOldBackupDestroysNothingInAnyOrderOfEvents(t *testing.T) {
	names := []string{"reserve", "create", "publish", "publish", "use", "use", "move", "collect", "delete", "let go", "restart", "back up", "restore"}
	used := 0
	for _, kind := range [][]option{nil, {block}} {
		for seed := range uint64(100) {
			t.Run(fmt.Sprintf("%d of %d options", seed, len(kind)), func(t *testing.T) {
				n := newNode()
				n.disks.AddPool(memory.PoolConfig{PoolRef: provision.PoolRef{Type: "LVM", Name: "vg1"}, Total: 10 * gib})
				n.classes["fast"].Spec.LVM.VolumeGroups = []string{"vg0", "vg1"}
				l := &life{node: n, t: t, random: rand.New(rand.NewPCG(seed, 7)), kind: kind}
				l.again()
				for range 60 {
					l.live(names)
				}
				if l.precious {
					used++
				}
			})
		}
	}
	if used < 20 {
		t.Errorf("only %d lives end with data: the others prove nothing", used)
	}
}
