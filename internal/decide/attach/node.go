package attach

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"berth.dev/berth/internal/decide"
)

// DefaultSlots is how many shared disks can be attached to a node whose CSINode names no limit. Kernels take
// far more. It bounds how many volumes the loss of one node can move.
const DefaultSlots = 64

// Node is what is known of a node. Without a Node object it is the zero value but for its name.
type Node struct {
	Name string
	// Exists: there is a Node object. Ready, Cordoned and the rest are its word.
	Exists, Ready, Cordoned bool
	Taints                  []corev1.Taint
	Labels                  map[string]string
	// Registered: the kubelet knows the driver of shared disks, by the CSINode.
	Registered bool
	// Limit is how many disks can be attached, by the CSINode; 0 if it does not say.
	Limit int
	// Guarded: the Lease of the node's guard is fresh. Without a guard no epoch begins there.
	Guarded bool
}

// slots is how many attachments the node can have.
func (n *Node) slots() int {
	if n.Limit > 0 {
		return n.Limit
	}
	return DefaultSlots
}

// object is the part of the Node object that selectors look at.
func (n *Node) object() *corev1.Node {
	o := &corev1.Node{}
	o.Name, o.Labels = n.Name, n.Labels
	return o
}

// Pod is what is known of a pod that uses claims.
type Pod struct {
	// Node that it is bound to, empty while it waits for one.
	Node string
	// Ended: none of its containers runs, or will run again.
	Ended bool
	// Claims that it uses, as namespace/name.
	Claims      []string
	Tolerations []corev1.Toleration
	// Required is its node selector and required node affinity.
	Required nodeaffinity.RequiredNodeAffinity
}

// Refusal says why a node may not get an attachment. The zero value refuses nothing.
type Refusal struct {
	// Reason is a CamelCase word for programs, and Message a clause for people.
	Reason, Message string
}

// asked is a node that is asked to take an attachment for pods.
type asked struct {
	*Node
	pods  []*Pod
	reach *nodeaffinity.NodeSelector
	// taint keeps a pod away, or would keep any pod away that does not ask for it.
	taint *corev1.Taint
}

// refusals are in the order in which a person would look: the node itself, Berth on it, its pods.
var refusals = decide.Chain[*asked, Refusal]{
	{When: func(a *asked) bool { return !a.Exists }, Then: refuse("NodeGone", "there is no such Node")},
	{When: func(a *asked) bool { return !a.Ready }, Then: refuse("NodeNotReady", "the Node is not ready")},
	{When: func(a *asked) bool { return a.Cordoned }, Then: refuse("NodeCordoned", "the Node is cordoned")},
	{When: func(a *asked) bool { return !a.Registered },
		Then: refuse("NoDriver", "the driver of shared disks is not registered there: its agent does not run")},
	{When: func(a *asked) bool { return !a.Guarded },
		Then: refuse("NoGuard", "the node's guard does not renew its lease: without it no pod could write there")},
	{When: func(a *asked) bool { return a.reach != nil && !a.reach.Match(a.object()) },
		Then: refuse("OutOfReach", "the node affinity of the PersistentVolume leaves the Node out")},
	{When: func(a *asked) bool { return a.taint != nil }, Then: func(a *asked) Refusal {
		return Refusal{"Tainted", fmt.Sprintf("the Node has the taint %s, which the volume's pods do not tolerate", a.taint.ToString())}
	}},
	{When: (*asked).deselected, Then: refuse("PodsElsewhere", "a pod that uses the volume may not run on the Node, by its node selector or affinity")},
}

func refuse(reason, message string) func(*asked) Refusal {
	return func(*asked) Refusal { return Refusal{reason, message} }
}

// Refuses says why a node may not get an attachment of a volume that these pods use, apart from slots.
//
// A taint that keeps pods away must be tolerated by all of the volume's pods, without a time limit: a standby
// is of use only where each of them can go. While no pod uses the volume, no taint is tolerated: nodes are
// tainted to keep strangers away. A node that is out of service is refused whatever pods tolerate.
func Refuses(n *Node, reach *nodeaffinity.NodeSelector, pods []*Pod) Refusal {
	return refusals.Decide(&asked{n, pods, reach, n.repels(pods)})
}

// repels is a taint that keeps one of the pods away, nil if there is none.
func (n *Node) repels(pods []*Pod) *corev1.Taint {
	none := []*Pod{{}}
	if len(pods) == 0 {
		pods = none
	}
	for i := range n.Taints {
		if n.Taints[i].Key == corev1.TaintNodeOutOfService {
			return &n.Taints[i]
		}
	}
	return untolerated(n.Taints, pods)
}

func untolerated(taints []corev1.Taint, pods []*Pod) *corev1.Taint {
	for _, p := range pods {
		if t, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, taints, lasting(p.Tolerations), keepsAway, true); found {
			return &t
		}
	}
	return nil
}

// passing are the beginnings of the taints by which Kubernetes says how a node is. It takes them off again by
// itself: a node that is away is another matter, and one that is cordoned says so itself.
var passing = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"}

// Leaving says whether what is attached to a node for these pods shall be attached to another one: the node is
// cordoned, or has a taint that one of the pods does not tolerate. While no pod uses the volume, taints say
// nothing: the pods that come next may tolerate them.
func Leaving(n *Node, pods []*Pod) bool {
	if n == nil {
		return false
	}
	lasting := slices.DeleteFunc(slices.Clone(n.Taints), func(t corev1.Taint) bool {
		return slices.ContainsFunc(passing, func(prefix string) bool { return strings.HasPrefix(t.Key, prefix) })
	})
	return n.Exists && (n.Cordoned || untolerated(lasting, pods) != nil)
}

func keepsAway(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// lasting are the tolerations that do not end: every pod tolerates an unreachable node for five minutes.
func lasting(all []corev1.Toleration) (kept []corev1.Toleration) {
	for i := range all {
		if all[i].TolerationSeconds == nil {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// deselected tells whether a pod's own rules keep it from the node. A selector that cannot be read matches
// nothing, as for a scheduler.
func (a *asked) deselected() bool {
	o := a.object()
	for _, p := range a.pods {
		if ok, _ := p.Required.Match(o); !ok {
			return true
		}
	}
	return false
}
