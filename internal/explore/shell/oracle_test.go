package shell

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// oracle judges with code of its own, by what is true in the world: it knows neither the rules nor the shells.
type oracle struct {
	w         *world
	mu        sync.Mutex
	violation string
	// class is the promise that it breaks: its words, without the names.
	class  string
	counts map[string]int
	// owners are the epochs that a record once called Active, with their node.
	owners map[string]string
	// lost are the epochs of which a write did not reach the disk.
	lost map[lineage.Epoch]bool
	// acked are the writes that a pod was told of, by volume.
	acked map[string][]string
	// back are the volumes whose record came from a backup.
	back map[string]bool
	// renewed are when the Lease of each node's guard was renewed last, at the API server.
	renewed map[string][]renewal
	// closed is the newest epoch that a machine kept as given up, by machine and volume.
	closed map[string]uint64
	// begun are when epochs began, by volume.
	begun map[string][]time.Time
	// truths are those of volumes with copies.
	truths map[string]*truth
	// over is how many writes a disk had executed when the record said that an epoch of several is over.
	over map[lineage.Epoch]int
}

func newOracle(w *world) *oracle {
	return &oracle{
		w: w, counts: map[string]int{}, owners: map[string]string{}, lost: map[lineage.Epoch]bool{}, acked: map[string][]string{},
		back: map[string]bool{}, closed: map[string]uint64{}, truths: map[string]*truth{}, begun: map[string][]time.Time{}, renewed: map[string][]renewal{}, over: map[lineage.Epoch]int{},
	}
}

// fails notes the first violation. It is called with the oracle's lock.
func (o *oracle) fails(format string, args ...any) {
	if o.violation == "" {
		o.violation, o.class = fmt.Sprintf(format, args...), format
		o.w.broke = time.Since(o.w.began)
		o.w.tale.ends("BROKEN", "%s", o.violation)
	}
}

func (o *oracle) restores(v *volume) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.back[v.name] = true
}

func (o *oracle) restored(v *volume) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.back[v.name]
}

// record judges a write of a record, before it is stored.
func (o *oracle) record(who string, old, v *v1alpha1.Volume) {
	was, is := old.Status.Ownership, v.Status.Ownership
	if is == nil {
		return
	}
	if o.w.plan.together {
		o.several(who, was, is, v.Name)
		return
	}
	writes, e, heard := o.writes(v.Name, is.Primary.Node, epochOf(is)), epochOf(is), o.w.heard()
	o.w.tells(who, "writes the record of %s: %s of %q in epoch %v, clean %t%s", o.w.short(v.Name), is.Primary.Phase, is.Primary.Node, e, is.Clean, entries(is))
	o.mu.Lock()
	defer o.mu.Unlock()
	if was == nil {
		return
	}
	if o.w.plan.copies {
		defer o.copied(who, was, is, v.Name, heard)
	}
	if before := epochOf(was); !o.back[v.Name] {
		switch old := was.Primary.Phase; {
		case e.Number < before.Number:
			o.fails("%s takes the record of %s back from epoch %v to %v", who, v.Name, before, e)
		case e == before && is.Primary.Phase == v1alpha1.PrimaryActive && (old == v1alpha1.PrimaryFenced || old == v1alpha1.PrimaryReleased):
			o.fails("%s calls epoch %v of %s active, and it was %s", who, e, v.Name, old)
		}
	}
	switch phase := is.Primary.Phase; {
	case phase == v1alpha1.PrimaryActive:
		if node, known := o.owners[e.ID]; known && node != is.Primary.Node {
			o.fails("epoch %v is %s's and %s's", e, node, is.Primary.Node)
		}
		o.owners[e.ID] = is.Primary.Node
	case phase == v1alpha1.PrimaryPreparing && is.Epoch != was.Epoch:
		o.counts["takeovers"]++
		o.begins(v.Name)
	case phase == was.Primary.Phase:
	case phase == v1alpha1.PrimaryFenced:
		o.counts["fences"]++
		if writes {
			o.fails("%s calls %s fenced in epoch %v of %s, and it can write", who, is.Primary.Node, e, v.Name)
		}
	case phase == v1alpha1.PrimaryReleased:
		o.counts["releases"]++
		if writes {
			o.fails("%s releases %s, and a pod on %s can write in epoch %v", who, v.Name, is.Primary.Node, e)
		}
		if is.Clean && !was.Clean && o.lost[e] {
			o.fails("%s releases epoch %v of %s as clean, and a write of it did not reach the disk", who, e, v.Name)
		}
	}
}

// storm is how many epochs of a volume no cluster needs in storming.
const storm, storming = 8, 10 * time.Second

// begins notes that an epoch of a volume begins: two that have a node begin and give up epochs in turn get nowhere.
func (o *oracle) begins(volume string) {
	now := time.Now()
	recent := append(slices.DeleteFunc(o.begun[volume], func(at time.Time) bool { return now.Sub(at) > storming }), now)
	if o.begun[volume] = recent; len(recent) > storm {
		o.fails("%d epochs of %s begin in %v", len(recent), volume, storming)
	}
}

// entries are a record's replicas, for a story.
func entries(r *v1alpha1.Ownership) (s string) {
	for i := range r.Replicas {
		e := &r.Replicas[i]
		s += fmt.Sprintf("; %s is %s", e.Node, e.State)
		if e.Fenced != nil {
			s += fmt.Sprintf(" and shut out epoch %d", e.Fenced.Number)
		}
	}
	return s
}

func epochOf(r *v1alpha1.Ownership) lineage.Epoch {
	return lineage.Epoch{Number: uint64(r.Epoch.Number), ID: r.Epoch.ID}
}

// writes says whether a pod on a node can write in an epoch now.
func (o *oracle) writes(volume, node string, e lineage.Epoch) (can bool) {
	m := o.w.machine(node)
	if m == nil {
		return false
	}
	o.w.locked(func() {
		k := m.kernels[volume]
		if !m.up.Load() || k == nil {
			return
		}
		if !k.backing.takes() || o.w.plan.copies && m.lags(o.lastRenewal(m.name), time.Now()) {
			return // what a node writes into its own copy after its fence is no part of the volume
		}
		for _, c := range k.containers {
			can = can || !c.killed && c.epoch == e
		}
	})
	return can
}

func (o *oracle) lastRenewal(node string) (at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if all := o.renewed[node]; len(all) > 0 {
		at = all[len(all)-1].at
	}
	return at
}

// mounts judges a mount at the moment when it happens. It is called with the world's lock.
func (o *oracle) mounts(k *kernel, e lineage.Epoch) {
	kept := k.m.durable(k.v.name)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts["mounts"]++
	o.w.tells(k.m.name, "mounts %s in epoch %v", k.v.short, e)
	known := false
	for _, open := range k.m.kept.Open {
		known = known || open.Volume == k.v.name && open.Epoch == e
	}
	switch {
	case kept.Opened != e || kept.Promise.Epoch != e:
		o.fails("%s mounts %s in epoch %v, and keeps durably that it opened %v and promised %v", k.m.name, k.v.short, e, kept.Opened, kept.Promise.Epoch)
	case e.Number <= kept.Closed.Number:
		o.fails("%s mounts %s in epoch %v, and has given up %v", k.m.name, k.v.short, e, kept.Closed)
	case !known:
		o.fails("%s mounts %s in epoch %v, and its guard does not know of it", k.m.name, k.v.short, e)
	case o.owners[e.ID] != k.m.name:
		o.fails("%s mounts %s in epoch %v, and no record ever called that Active for it", k.m.name, k.v.short, e)
	case kept.Taken.Epoch != e || kept.Taken.Boot != k.m.bootID():
		o.fails("%s mounts %s in epoch %v, and keeps that pods may have %+v", k.m.name, k.v.short, e, kept.Taken)
	case o.w.plan.copies:
		o.judgesHead(k, e)
	}
}

// keeps judges what a machine keeps: an epoch that it gave up stays given up.
func (o *oracle) keeps(m *machine, k journal.Kept) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := m.name + k.Volume
	if k.Closed.Number < o.closed[key] {
		o.fails("%s keeps that it gave up epoch %v of %s, and it had given up epoch %d", m.name, k.Closed, k.Volume, o.closed[key])
	}
	o.closed[key] = k.Closed.Number
}

// reserves judges a reservation that was taken. Bits 32 to 61 of a key are the number of its epoch, and bit 62
// says that it is a fence.
func (o *oracle) reserves(p *process, from, key ownership.RawKey) {
	number := func(k ownership.RawKey) uint64 { return uint64(k) >> 32 & (1<<30 - 1) }
	fence := func(k ownership.RawKey) bool { return k>>62&1 == 1 }
	o.w.tells(p.name, "takes the reservation %#x from %#x", uint64(key), uint64(from))
	o.mu.Lock()
	defer o.mu.Unlock()
	if from != 0 && number(from) != number(key) {
		o.counts["pre-emptions"]++
	}
	if number(from) > number(key) || number(from) == number(key) && fence(from) && !fence(key) {
		o.fails("%s takes the reservation for epoch %d from one that shut it out, of epoch %d", p.name, number(key), number(from))
	}
}

// detaches judges a detach.
func (o *oracle) detaches(k *kernel) {
	if err := k.held(); err != nil {
		o.w.fail("the disk is detached from %s: %v", k.m.name, err)
	}
}

// gave judges an unstaging that was answered with success.
func (o *oracle) gave(k *kernel) {
	if err := k.held(); err != nil {
		o.w.fail("%s has unstaged: %v", k.m.name, err)
	}
	if o.restored(k.v) {
		return
	}
	r := one[v1alpha1.Volume](o.w.api, client.ObjectKey{Name: k.v.name}).Status.Ownership
	if x := writerOn(r, k.m.name); x.Phase == v1alpha1.PrimaryActive || x.Phase == v1alpha1.PrimaryPreparing {
		o.w.fail("%s has unstaged %s, and the record says that it owns it", k.m.name, k.v.short)
	}
}

// vouches judges the word of an agent that every epoch is closed.
func (o *oracle) vouches(m *machine) {
	for _, v := range o.w.volumes {
		if k := m.durable(v.name); !k.Opened.IsZero() && !k.GaveUp(k.Opened) {
			o.w.fail("%s says that every epoch is closed, and it keeps epoch %v of %s as open", m.name, k.Opened, v.short)
		}
	}
}

// wrote notes what became of a write. It is called with the world's lock.
func (o *oracle) wrote(e lineage.Epoch, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts["writes"]++
	if err == nil {
		return
	}
	o.counts["refused writes"]++
	o.w.tells("target", "refuses a write of epoch %v: %v", e, err)
	o.lost[e] = true
}

func (o *oracle) acknowledged(v *volume, data []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked[v.name] = append(o.acked[v.name], data...)
}

// began notes that a pod got its volume.
func (o *oracle) began(types.UID) { o.w.count("pods begun") }

// refusedFor is for how long the disk must have refused the pod of one of several writers that a controller ends.
const refusedFor = 10 * time.Second

// ends judges the end of a pod that is not asked for by its workload. The API server has accepted the request.
func (o *oracle) ends(p *process, pod *corev1.Pod, v *v1alpha1.Volume) {
	if p.kind != "controller" {
		return
	}
	o.w.count("pods ended by oversight")
	o.w.tells(p.name, "ends pod %s", pod.Name)
	m := o.w.machine(pod.Spec.NodeName)
	r := v.Status.Ownership
	if m == nil || r == nil || writerOn(r, m.name).Phase != v1alpha1.PrimaryActive {
		return
	}
	e := inEpoch(writerOn(r, m.name))
	alive := false
	o.w.locked(func() {
		if k := m.kernels[volumeOf(pod)]; k != nil && m.up.Load() && k.containers[pod.UID] != nil {
			c := k.containers[pod.UID]
			alive = !c.killed && c.epoch == e && (!o.w.plan.together || time.Since(c.wrote) < refusedFor)
		}
	})
	o.mu.Lock()
	over := o.closed[m.name+v.Name] >= e.Number
	o.mu.Unlock()
	if alive && !(over && !o.w.plan.together) {
		o.w.fail("%s ends pod %s, which writes in the present epoch %v", p.name, pod.Name, e)
	}
}
