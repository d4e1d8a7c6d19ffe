package shell

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// kubelet is that of a machine: it has the volumes of its pods staged and published, runs the pods, and has what no
// pod wants any more unpublished and unstaged. It learns of pods by a watch, and goes on with what it knows while the
// API server is away. One that begins anew has everything of its pods staged and published again: it finds what is
// there, and does not trust it.
type kubelet struct {
	p      *process
	m      *machine
	caches *caches

	mu sync.Mutex
	// busy are the volumes that a call is about. published are the pods that have theirs as far as this kubelet knows,
	// and ended those that it has ended.
	busy             map[string]bool
	published, ended map[types.UID]bool
}

func (m *machine) kubelets() {
	p := m.begins("kubelet")
	k := &kubelet{p: p, m: m, caches: newCaches(p, nil), busy: map[string]bool{}, published: map[types.UID]bool{}, ended: map[types.UID]bool{}}
	m.w.locked(func() { m.kubelet = k })
	go k.every(time.Second, "looks", k.looks)
	go k.every(10*time.Second, "renews", k.renews)
}

func (k *kubelet) every(d time.Duration, what string, f func()) {
	for {
		x := k.p.dice(what, "")
		if k.p.passes(k.p.ctx, d/2+x.upTo(d)) != nil {
			return
		}
		f()
	}
}

// renews renews the Leases of the kubelet and of the agent.
func (k *kubelet) renews() {
	c := &caller{p: k.p}
	for _, key := range []client.ObjectKey{
		{Namespace: corev1.NamespaceNodeLease, Name: k.m.name}, {Namespace: namespace, Name: v1alpha1.AgentLeasePrefix + k.m.name},
	} {
		a := k.m.agentNow()
		if key.Namespace == namespace && (a == nil || a.p.isDead()) {
			continue
		}
		_ = c.call(k.p.ctx, "renew", key.Name, func() error {
			return edit(k.m.w.api, key, func(l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()} })
		})
	}
}

// pods are those of one volume on this machine.
type pods struct {
	// wanted is to run. ending are being deleted, and gone are no objects any more.
	wanted *corev1.Pod
	ending []*corev1.Pod
	gone   []types.UID
}

// looks compares the pods with what runs, and makes the calls that are due.
func (k *kubelet) looks() {
	i := k.caches.of(kindOf(&corev1.Pod{}))
	i.mu.Lock()
	shown := inOrder(i.shown)
	i.mu.Unlock()
	for _, x := range k.m.all() {
		all, known := &pods{}, map[types.UID]bool{}
		for _, o := range shown {
			switch p := o.(*corev1.Pod); {
			case p.Spec.NodeName != k.m.name || volumeOf(p) != x.v.name:
			case p.DeletionTimestamp != nil:
				if known[p.UID] = true; !k.is(k.ended, p.UID) {
					all.ending = append(all.ending, p)
				}
			default:
				known[p.UID] = true
				all.wanted = p
			}
		}
		all.gone = x.strangers(known)
		k.calls(x, all)
	}
}

// strangers are the pods that have the volume, or run with it, and are not known, in order.
func (x *kernel) strangers(known map[types.UID]bool) (uids []types.UID) {
	x.m.w.locked(func() {
		for _, uid := range slices.Concat(slices.Collect(maps.Keys(x.containers)), slices.Collect(maps.Keys(x.targets))) {
			if !known[uid] && !slices.Contains(uids, uid) {
				uids = append(uids, uid)
			}
		}
	})
	slices.Sort(uids)
	return uids
}

// calls makes the next call to the agent about a volume, unless one is under way.
func (k *kubelet) calls(x *kernel, of *pods) {
	used, staged, runs := false, false, false
	k.m.w.locked(func() {
		used, staged = len(x.containers)+len(x.targets) > 0, k.m.dirs[x.v.name]
		runs = of.wanted != nil && x.runs(of.wanted.UID)
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	var call func(ctx context.Context, a *agent) error
	switch pod := of.wanted; {
	case k.busy[x.v.name]:
	case len(of.ending)+len(of.gone) > 0:
		call = func(ctx context.Context, a *agent) error { return k.ends(ctx, a, x, of) }
	case pod != nil && !(runs && k.published[pod.UID] && pod.Status.Phase == corev1.PodRunning):
		call = func(ctx context.Context, a *agent) error { return k.begins(ctx, a, x, pod) }
	case pod == nil && staged && !used:
		call = func(ctx context.Context, a *agent) error { return k.unstages(ctx, a, x) }
	}
	if call == nil {
		return
	}
	k.busy[x.v.name] = true
	go func() {
		ctx, cancel := context.WithTimeout(k.p.ctx, 2*time.Minute)
		defer cancel()
		if a := k.m.agentNow(); a != nil && !a.p.isDead() {
			if err := call(ctx, a); err != nil {
				k.m.w.note(k.m, x.v, err)
			}
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.busy[x.v.name] = false
	}()
}

// begins has the volume staged and published, and begins the pod.
func (k *kubelet) begins(ctx context.Context, a *agent, x *kernel, pod *corev1.Pod) error {
	if !k.is(k.published, pod.UID) {
		k.m.w.locked(func() { k.m.dirs[x.v.name], x.targets[pod.UID] = true, true })
		if err := a.stage(ctx, x.v); err != nil {
			return err
		}
		if err := a.publish(ctx, x.v, pod.UID); err != nil {
			return err
		}
		k.notes(k.published, pod.UID)
	}
	if err := k.p.effect(ctx, local, "Start", pod.Name, func() error { return x.starts(pod.UID) }); err != nil {
		return err
	}
	c := &caller{p: k.p}
	err := c.call(k.p.ctx, "UpdatePodStatus", pod.Name, func() error {
		return edit(k.m.w.api, client.ObjectKeyFromObject(pod), func(p *corev1.Pod) {
			if p.UID == pod.UID {
				p.Status.Phase = corev1.PodRunning
			}
		})
	})
	return client.IgnoreNotFound(err)
}

func (k *kubelet) is(of map[types.UID]bool, uid types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return of[uid]
}

func (k *kubelet) notes(of map[types.UID]bool, uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of[uid] = true
}

// ends ends pods that are being deleted, and what is left of those that are gone.
func (k *kubelet) ends(ctx context.Context, a *agent, x *kernel, of *pods) error {
	end := func(uid types.UID) error {
		if err := x.kills(k.p, uid); err != nil {
			return err
		}
		if err := a.unpublish(ctx, x.v, uid); err != nil {
			return err
		}
		k.m.w.locked(func() { delete(x.targets, uid) })
		return nil
	}
	for _, uid := range of.gone {
		if err := end(uid); err != nil {
			return err
		}
	}
	for _, p := range of.ending {
		if err := end(p.UID); err != nil {
			return err
		}
		c := &caller{p: k.p}
		if err := c.Delete(k.p.ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
		k.notes(k.ended, p.UID)
	}
	return nil
}

func (k *kubelet) unstages(ctx context.Context, a *agent, x *kernel) error {
	if err := a.unstage(ctx, x.v); err != nil {
		return err
	}
	k.m.w.oracle.gave(x)
	k.m.w.locked(func() { delete(k.m.dirs, x.v.name) })
	return nil
}
