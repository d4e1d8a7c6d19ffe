package shell

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/publish/staging"
)

// kubelet is that of a machine: it has the volumes of its pods staged, runs the pods, and unstages what no pod
// wants any more. It learns of pods by a watch, and goes on with what it knows while the API server is away.
type kubelet struct {
	p      *process
	m      *machine
	caches *caches

	mu sync.Mutex
	// busy are the volumes that a call is about. staged are those that it has to unstage.
	busy, staged map[string]bool
	// ran are the pods that have begun here: their container is not given the volume a second time.
	ran map[types.UID]bool
}

func (m *machine) kubelets() {
	p := m.begins("kubelet")
	k := &kubelet{p: p, m: m, caches: newCaches(p), busy: map[string]bool{}, staged: map[string]bool{}, ran: map[types.UID]bool{}}
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

// looks compares the pods with what runs, and makes the calls that are due.
func (k *kubelet) looks() {
	wanted := map[string]*corev1.Pod{}
	known := map[types.UID]bool{}
	i := k.caches.of(kindOf(&corev1.Pod{}))
	i.mu.Lock()
	pods := inOrder(i.shown)
	i.mu.Unlock()
	for _, o := range pods {
		p := o.(*corev1.Pod)
		if p.Spec.NodeName != k.m.name {
			continue
		}
		known[p.UID] = true
		if p.DeletionTimestamp == nil {
			wanted[volumeOf(p)] = p
		} else {
			k.ends(p)
		}
	}
	for _, x := range k.m.all() {
		k.sweeps(x, known)
		k.calls(x, wanted[x.v.name])
	}
}

// ends ends a pod that is being deleted.
func (k *kubelet) ends(p *corev1.Pod) {
	x := k.m.kernel(volumeOf(p))
	if x == nil || x.kills(k.p, p.UID) != nil {
		return
	}
	x.unmounts("/pods/" + string(p.UID))
	c := &caller{p: k.p}
	_ = c.Delete(k.p.ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
}

// sweeps ends containers of pods that are gone.
func (k *kubelet) sweeps(x *kernel, known map[types.UID]bool) {
	var gone []types.UID
	k.m.w.locked(func() {
		for uid := range x.containers {
			if !known[uid] {
				gone = append(gone, uid)
			}
		}
		for uid := range x.binds {
			if !known[uid] && x.containers[uid] == nil {
				gone = append(gone, uid)
			}
		}
	})
	for _, uid := range gone {
		if x.kills(k.p, uid) == nil {
			x.unmounts("/pods/" + string(uid))
		}
	}
}

// calls makes the next call to the agent about a volume, unless one is under way.
func (k *kubelet) calls(x *kernel, pod *corev1.Pod) {
	var idle bool
	k.m.w.locked(func() { idle = len(x.containers)+len(x.binds) == 0 })
	k.mu.Lock()
	defer k.mu.Unlock()
	var call func(ctx context.Context)
	switch {
	case k.busy[x.v.name]:
	case pod != nil && !k.ran[pod.UID]:
		call = func(ctx context.Context) { k.stages(ctx, x, pod) }
	case pod == nil && idle && k.staged[x.v.name]:
		call = func(ctx context.Context) { k.unstages(ctx, x) }
	}
	if call == nil {
		return
	}
	k.busy[x.v.name] = true
	go func() {
		ctx, cancel := context.WithTimeout(k.p.ctx, 2*time.Minute)
		defer cancel()
		call(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.busy[x.v.name] = false
	}()
}

func (k *kubelet) agent() *agent {
	a := k.m.agentNow()
	if a == nil || a.p.isDead() {
		return nil
	}
	return a
}

// stages has the volume staged and published, and begins the pod.
func (k *kubelet) stages(ctx context.Context, x *kernel, pod *corev1.Pod) {
	a := k.agent()
	if a == nil {
		return
	}
	k.set(k.staged, x.v.name, true)
	_ = a.calls.Fetch(ctx, x.v.name)
	d := k.p.dice("stages", x.v.name)
	if k.p.passes(ctx, d.upTo(time.Millisecond)) != nil { // the next call does not come in the moment in which Fetch had the volume tended
		return
	}
	err := a.calls.Take(ctx, x.v.name, func(ctx context.Context) error {
		if err := a.p.lingers(ctx, "Check", x.v.name); err != nil { // of a filesystem, before it is mounted
			return err
		}
		return a.p.effect(ctx, local, "Mount", x.v.name, func() error {
			e, err := k.m.opened(x.v.name)
			if err != nil {
				return err
			}
			return x.mounts(e)
		})
	})
	if err != nil {
		k.m.w.note(k.m, x.v, err)
		return
	}
	err = a.calls.Holds(ctx, x.v.name, func(ctx context.Context) error {
		if err := a.p.lingers(ctx, "Prepare", x.v.name); err != nil {
			return err
		}
		return a.p.effect(ctx, local, "Bind", x.v.name, func() error { return x.runs(pod.UID) })
	})
	if err != nil {
		k.m.w.note(k.m, x.v, err)
		return
	}
	k.mu.Lock()
	k.ran[pod.UID] = true
	k.mu.Unlock()
	k.m.w.oracle.began(pod.UID)
	for k.p.ctx.Err() == nil {
		c := &caller{p: k.p}
		err := c.call(k.p.ctx, "UpdatePodStatus", pod.Name, func() error {
			return edit(k.m.w.api, client.ObjectKeyFromObject(pod), func(p *corev1.Pod) {
				if p.UID == pod.UID {
					p.Status.Phase = corev1.PodRunning
				}
			})
		})
		if client.IgnoreNotFound(err) == nil || k.p.isDead() {
			return
		}
	}
}

func (k *kubelet) unstages(ctx context.Context, x *kernel) {
	a := k.agent()
	if a == nil {
		return
	}
	err := a.calls.Give(ctx, x.v.name, staging.Off{
		Unmount: func(ctx context.Context) error {
			return a.p.effect(ctx, local, "Unstage", x.v.name, func() error {
				x.unmounts(x.stagePath())
				return nil
			})
		},
		Left: func(context.Context) (paths []string, err error) {
			k.m.w.locked(func() { paths = x.paths() })
			return paths, nil
		},
	})
	if err != nil {
		k.m.w.note(k.m, x.v, err)
		return
	}
	k.m.w.oracle.gave(x)
	k.set(k.staged, x.v.name, false)
}

func (k *kubelet) set(of map[string]bool, volume string, to bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of[volume] = to
}
