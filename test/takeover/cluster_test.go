//go:build platform

package takeover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
)

// players play the rest of Kubernetes, by what they watch: the pod is made anew when it has ended, bound to a node
// with the volume's label, and given to that node's kubelet.
type players struct {
	env    *apitest.Environment
	nodes  []*node
	dice   *rand.Rand
	claim  *corev1.PersistentVolumeClaim
	volume *v1alpha1.Volume
	rounds.Stations

	mu sync.Mutex
	// seen are the Nodes, pod is the one that is there, known the Volume, and epoch the one before the fault.
	seen  map[string]*corev1.Node
	pod   *corev1.Pod
	known *v1alpha1.Volume
	epoch int64
	// lost is the node that the round takes the pod from. planned: that node keeps running, and its pod is moved. unready
	// names an attachment that was not ready during the move, empty if there was none.
	lost    string
	planned bool
	unready string
	// old is the pod on the lost node, and bound the one that was bound last: what is seen of it may be older.
	old, bound types.UID
	// renewals of Leases, by namespace and name.
	renewals map[string]int
}

// watch begins to play.
func (p *players) watch(t *testing.T) {
	t.Helper()
	of, err := cache.New(p.env.Config, cache.Options{Scheme: p.env.Scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}}, &corev1.Node{}: {}, &v1alpha1.Volume{}: {}, &coordinationv1.Lease{}: {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = of.Start(t.Context()) }()
	for object, seen := range map[client.Object]func(context.Context, any){
		&corev1.Pod{}: p.seePod, &corev1.Node{}: p.seeNode, &v1alpha1.Volume{}: p.seeVolume, &coordinationv1.Lease{}: p.seeLease,
	} {
		informer, err := of.GetInformer(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		handle := func(o any) {
			p.mu.Lock()
			defer p.mu.Unlock()
			seen(t.Context(), o)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) },
			DeleteFunc: func(o any) {
				if pod, is := o.(*corev1.Pod); is {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.ended(t.Context(), pod)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (p *players) say(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the players:", err)
	}
}

// makes makes the pod, as a StatefulSet does.
func (p *players) makes(ctx context.Context) error {
	return p.env.Client.Create(ctx, cluster.Pod(metav1.NamespaceDefault, "db-0", []*corev1.PersistentVolumeClaim{p.claim}, cluster.Steadfast))
}

func (p *players) ended(ctx context.Context, pod *corev1.Pod) {
	if p.pod == nil || p.pod.UID != pod.UID {
		return
	}
	p.Reach(rounds.Ended, time.Now())
	p.pod = nil
	p.say(p.makes(ctx))
}

func (p *players) seePod(ctx context.Context, o any) {
	if pod, is := o.(*corev1.Pod); is {
		p.pod = pod
		p.moves(ctx)
	}
}

func (p *players) seeNode(ctx context.Context, o any) {
	if n, is := o.(*corev1.Node); is {
		p.seen[n.Name] = n
		p.moves(ctx)
	}
}

// moves binds the pod, or gives it to its kubelet.
func (p *players) moves(ctx context.Context) {
	if p.pod == nil || p.known == nil {
		return
	}
	if name := p.pod.Spec.NodeName; name != "" {
		if p.pod.UID != p.old {
			p.Reach(rounds.Bound, time.Now())
		}
		for _, n := range p.nodes {
			if n.name == name && n.kubelet != nil {
				n.kubelet.takes(p.pod, p.known, func(step string) { p.Reach(step, time.Now()) })
			}
		}
		return
	}
	var fit []string
	for name, n := range p.seen {
		if n.Labels[v1alpha1.VolumeLabelPrefix+p.known.Name] == v1alpha1.VolumeLabelValue && !n.Spec.Unschedulable {
			fit = append(fit, name)
		}
	}
	if len(fit) == 0 || p.bound == p.pod.UID {
		return
	}
	slices.Sort(fit)
	to := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.pod.Namespace, Name: p.pod.Name, UID: p.pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: fit[p.dice.IntN(len(fit))]}}
	p.bound = p.pod.UID
	p.say(p.env.Client.SubResource("binding").Create(ctx, p.pod, to))
}

func (p *players) seeVolume(ctx context.Context, o any) {
	v, is := o.(*v1alpha1.Volume)
	if !is {
		return
	}
	p.known = v
	if o := v.Status.Ownership; o != nil && p.lost != "" {
		p.steps(o, time.Now())
	}
	p.moves(ctx)
}

// steps notes the steps of a failover, or of a planned move, that the record shows.
func (p *players) steps(o *v1alpha1.Ownership, now time.Time) {
	next := o.Epoch.Number > p.epoch
	if o.Primary.Phase == v1alpha1.PrimaryActive && next {
		p.Reach(rounds.Promoted, now)
	}
	if p.planned {
		p.letsGo(o, next, now)
		return
	}
	if o.FenceRequest != nil && o.FenceRequest.Epoch.Number == p.epoch {
		p.Reach(rounds.Asked, now)
	}
	for _, r := range o.Replicas {
		if r.Fenced != nil && r.Fenced.Number == p.epoch {
			p.Reach(rounds.Shut, now)
		}
	}
	if o.Primary.Phase == v1alpha1.PrimaryFenced || next {
		p.Reach(rounds.Fenced, now)
	}
}

// suspects notes that a controller suspects a node.
func (p *players) suspects(node string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if node == p.lost {
		p.Reach(rounds.Suspected, at)
	}
}

// sharedDisk makes the Volume by hand, as docs/shared-disks.md says, and a claim.
func (p *players) sharedDisk(t *testing.T) {
	t.Helper()
	c := cluster.Claim(metav1.NamespaceDefault, "data-db-0", "", fmt.Sprint(size), cluster.Raw)
	p.volume = &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(c.Name)},
		Spec: v1alpha1.VolumeSpec{
			Driver: v1alpha1.DiskDriverName, Capacity: *resource.NewQuantity(size, resource.BinarySI), VolumeMode: v1alpha1.Block,
			PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{
				Factor: 3, Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
				Attachments: &v1alpha1.Attachments{MaxShares: 3, Persistent: true, Disk: &v1alpha1.SharedDisk{Handle: diskHandle(), Identity: identity}},
			},
		},
	}
	c.Spec.VolumeName = p.volume.Name
	p.create(t, p.volume, c)
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: p.volume.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.DiskDriverName, VolumeHandle: p.volume.Name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.VolumeLabelPrefix + p.volume.Name, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}},
			}}}},
		},
	}
	p.create(t, pv)
	c.Status.Phase = corev1.ClaimBound
	pv.Status.Phase = corev1.VolumeBound
	for _, o := range []client.Object{c, pv} {
		if err := p.env.Client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	p.claim = c
}

func (p *players) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := p.env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
