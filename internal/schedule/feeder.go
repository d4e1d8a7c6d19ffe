package schedule

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/storageclass"
)

// feeder adds the facts that no single object has.
type feeder struct {
	book *Book
	from Informers

	mu sync.Mutex
	// classes are the driver's StorageClasses that volumes can be made of.
	classes map[string]*storagev1.StorageClass
	// unbound holds the unbound claims by StorageClass: they are observed again when it changes.
	unbound map[string]map[string]*corev1.PersistentVolumeClaim
	// pvs says by name whether a PersistentVolume is the driver's. unknown holds the bound claims
	// whose PersistentVolume is not known yet, by its name: they come by another watch.
	pvs     map[string]bool
	unknown map[string]*corev1.PersistentVolumeClaim
	nodes   map[string]reported
}

// reported is a node's last report and whether its agent could answer then.
type reported struct {
	node *v1alpha1.StorageNode
	away string
}

func newFeeder(book *Book, from Informers) *feeder {
	return &feeder{
		book: book, from: from,
		classes: map[string]*storagev1.StorageClass{},
		unbound: map[string]map[string]*corev1.PersistentVolumeClaim{},
		pvs:     map[string]bool{},
		unknown: map[string]*corev1.PersistentVolumeClaim{},
		nodes:   map[string]reported{},
	}
}

func (f *feeder) observeStorageClass(c *storagev1.StorageClass) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.classes[c.Name]
	delete(f.classes, c.Name)
	if !f.from.Driver.Provisions(c) {
		return
	}
	if _, err := storageclass.Parse(c.Parameters); err != nil {
		f.from.Log.Info("a storage class cannot be used", "storageClass", c.Name, "problem", err.Error())
		return
	}
	f.classes[c.Name] = c
	if before != nil && maps.Equal(before.Parameters, c.Parameters) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(f.unbound[c.Name])) {
		f.charge(f.unbound[c.Name][key])
	}
}

// forgetStorageClass changes nothing for existing claims: a class is needed to make a
// volume, not to have one.
func (f *feeder) forgetStorageClass(c *storagev1.StorageClass) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.classes, c.Name)
}

func (f *feeder) observePoolClass(c *v1alpha1.PoolClass) {
	f.book.change(func(l *ledger.Ledger) {
		if err := l.ObserveClass(class(c)); err != nil {
			f.from.Log.Error(err, "a pool class cannot be used", "poolClass", c.Name)
		}
	})
}

func (f *feeder) forgetPoolClass(c *v1alpha1.PoolClass) {
	f.book.change(func(l *ledger.Ledger) { l.ObserveClassGone(c.Name) })
}

func (f *feeder) observeNode(n *v1alpha1.StorageNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell(n, f.from.Heartbeats.Away(n.Name))
}

func (f *feeder) tell(n *v1alpha1.StorageNode, away string) {
	f.nodes[n.Name] = reported{n, away}
	f.book.change(func(l *ledger.Ledger) {
		if err := l.ObserveNode(report(n, away)); err != nil {
			f.from.Log.Error(err, "a pool is reported that cannot be used", "node", n.Name)
		}
	})
}

func (f *feeder) forgetNode(n *v1alpha1.StorageNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.nodes, n.Name)
	f.book.change(func(l *ledger.Ledger) { l.ObserveNodeGone(n.Name) })
}

// lookAtHeartbeats looks at all nodes, since no event tells when a node falls silent. It runs
// all the time, so it looks each node up once and allocates nothing while no node comes or goes.
func (f *feeder) lookAtHeartbeats() {
	f.mu.Lock()
	var back []string
	for node, last := range f.nodes {
		if f.turned(node, last) {
			back = append(back, node)
		}
	}
	f.mu.Unlock()
	f.returned(back...)
}

// heard tells the ledger of a node that has fallen silent, or is back.
func (f *feeder) heard(node string) {
	f.mu.Lock()
	last, known := f.nodes[node]
	back := known && f.turned(node, last)
	f.mu.Unlock()
	if back {
		f.returned(node)
	}
}

// returned calls Returned for nodes that are heard of again, without the lock.
func (f *feeder) returned(nodes ...string) {
	if f.from.Returned == nil {
		return
	}
	for _, node := range nodes {
		f.from.Returned(node)
	}
}

// turned looks at one node, under the lock, and says whether it is back.
func (f *feeder) turned(node string, last reported) bool {
	away := f.from.Heartbeats.Away(node)
	if (away == "") == (last.away == "") {
		return false
	}
	f.tell(last.node, away)
	return away == ""
}
