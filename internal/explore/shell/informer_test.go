package shell

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informer is what one process sees of one kind: a cache that is late, whose watch breaks and misses what
// happens until it lists anew, and handlers.
type informer struct {
	p    *process
	kind kind
	cut  toolscache.TransformFunc // nil keeps all

	mu       sync.Mutex
	shown    map[client.ObjectKey]client.Object
	handlers []toolscache.ResourceEventHandler
	last     time.Time // when the newest event arrives
	gap      bool      // events were missed
	relists  bool      // a list is under way
	heard    uint64
	watch    int // counts the lists. What an earlier watch has to tell is not told any more.
}

// caches are those of a process.
type caches struct {
	cache.Cache
	p    *process
	mu   sync.Mutex
	all  map[kind]*informer
	cuts map[kind]toolscache.TransformFunc
}

// newCaches returns caches that keep of some kinds what those of the product keep.
func newCaches(p *process, cuts map[client.Object]toolscache.TransformFunc) *caches {
	c := &caches{p: p, all: map[kind]*informer{}, cuts: map[kind]toolscache.TransformFunc{}}
	for o, transform := range cuts {
		c.cuts[kindOf(o)] = transform
	}
	return c
}

// of returns the informer of a kind, which begins with a list.
func (c *caches) of(k kind) *informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.all[k]; i != nil {
		return i
	}
	i := &informer{p: c.p, kind: k, cut: c.cuts[k]}
	c.all[k] = i
	a := c.p.w.api
	a.mu.Lock()
	defer a.mu.Unlock()
	i.shown = i.kept(a.objects[k])
	a.informers = append(a.informers, i)
	return i
}

// kept is what the cache keeps of objects.
func (i *informer) kept(objects map[client.ObjectKey]client.Object) map[client.ObjectKey]client.Object {
	kept := make(map[client.ObjectKey]client.Object, len(objects))
	for key, o := range objects {
		kept[key] = i.keeps(o)
	}
	return kept
}

func (i *informer) keeps(o client.Object) client.Object {
	if i.cut == nil {
		return o
	}
	kept, err := i.cut(o)
	if err != nil {
		i.p.w.fail("the cache of %s: %v", i.kind.Name(), err)
		return o
	}
	return kept.(client.Object)
}

// GetInformer implements cache.Cache.
func (c *caches) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return listening{informer: c.of(kindOf(o))}, nil
}

// listening is an informer as the product has it.
type listening struct {
	cache.Informer
	informer *informer
}

// AddEventHandler implements cache.Informer.
func (l listening) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	l.informer.tells(h)
	return synced{}, nil
}

// AddEventHandlerWithOptions implements cache.Informer.
func (l listening) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandler(h)
}

// WaitForCacheSync implements cache.Cache.
func (c *caches) WaitForCacheSync(context.Context) bool { return true }

type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// tells adds a handler, which is told of everything first.
func (i *informer) tells(h toolscache.ResourceEventHandler) {
	i.mu.Lock()
	all := inOrder(i.shown)
	i.handlers = append(i.handlers, h)
	i.mu.Unlock()
	for _, o := range all {
		h.OnAdd(o, true)
	}
}

func inOrder(objects map[client.ObjectKey]client.Object) []client.Object {
	all := make([]client.Object, 0, len(objects))
	for _, o := range objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// hears is told of a change by the API server, with its lock.
func (i *informer) hears(o client.Object, gone bool) {
	if i.p.isDead() {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gap || i.p.m.awayFromAPI() {
		i.breaks()
		return
	}
	i.heard++
	d := rolled(i.p.w.seed, i.heard, i.p.name, "hears of", i.kind.Name())
	at := time.Now().Add(d.upTo(100 * time.Millisecond))
	if !at.After(i.last) {
		at = i.last.Add(1)
	}
	i.last = at
	watch, o := i.watch, i.keeps(o)
	time.AfterFunc(time.Until(at), func() { i.arrives(watch, o, gone) })
}

// late holds all events up for a while.
func (i *informer) late(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if until := time.Now().Add(d); until.After(i.last) { // a watch keeps its order
		i.last = until
	}
}

// breaks ends the watch. It is called with the lock.
func (i *informer) breaks() {
	i.gap = true
	if i.relists {
		return
	}
	i.relists = true
	i.heard++
	d := rolled(i.p.w.seed, i.heard, i.p.name, "lists", i.kind.Name())
	time.AfterFunc(d.between(200*time.Millisecond, 3*time.Second), i.list)
}

// misses ends the watch.
func (i *informer) misses() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.breaks()
}

func (i *informer) arrives(watch int, o client.Object, gone bool) {
	i.mu.Lock()
	if i.p.isDead() || i.gap || watch != i.watch {
		i.mu.Unlock()
		return
	}
	if i.p.m.awayFromAPI() {
		i.breaks()
		i.mu.Unlock()
		return
	}
	key := client.ObjectKeyFromObject(o)
	old := i.shown[key]
	if gone {
		delete(i.shown, key)
	} else {
		i.shown[key] = o
	}
	handlers := i.handlers
	i.mu.Unlock()
	tell(handlers, old, o, gone)
}

func tell(handlers []toolscache.ResourceEventHandler, old, o client.Object, gone bool) {
	for _, h := range handlers {
		switch {
		case gone && old == nil:
		case gone:
			h.OnDelete(old)
		case old == nil:
			h.OnAdd(o, false)
		default:
			h.OnUpdate(old, o)
		}
	}
}

// list makes the cache what the API server has now, if that can be reached, and tells the handlers of the
// difference alone.
func (i *informer) list() {
	if i.p.isDead() {
		return
	}
	i.mu.Lock()
	if i.relists = false; i.p.m.awayFromAPI() {
		i.breaks()
		i.mu.Unlock()
		return
	}
	i.mu.Unlock()
	a := i.p.w.api
	a.mu.Lock()
	i.mu.Lock()
	before, now := i.shown, i.kept(a.objects[i.kind])
	i.shown, i.gap, i.last = maps.Clone(now), false, time.Now()
	i.watch++
	handlers := i.handlers
	i.mu.Unlock()
	a.mu.Unlock()
	for _, o := range inOrder(now) {
		if old := before[client.ObjectKeyFromObject(o)]; old == nil || old.GetResourceVersion() != o.GetResourceVersion() {
			tell(handlers, old, o, false)
		}
	}
	for _, o := range inOrder(before) {
		if now[client.ObjectKeyFromObject(o)] == nil {
			tell(handlers, o, o, true)
		}
	}
}
