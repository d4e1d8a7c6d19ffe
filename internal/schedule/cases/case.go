package cases

import (
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// Case is a pod to be scheduled in a cluster.
type Case struct {
	schedule.Lists
	// Silent maps silent nodes to the message about their silence.
	Silent map[string]string
	Pod    *corev1.Pod
	// Nodes is the answer of every node.
	Nodes map[string]Answer
	// Unready is part of the reason why the pod fits on no node at all. Nodes is then empty.
	Unready string
	// Best node under Spread; empty where several are equal, or none fits.
	Best string
}

// Answer is the answer of a node. If the node fits, Pools says which pool each of the
// pod's new volumes gets, by the volume's name in the pod.
type Answer struct {
	Reason ledger.Reason
	Pools  map[string]string
	// Told is part of the message about a node that does not fit.
	Told string
}

// Away is empty, or says why a node cannot answer.
func (c *Case) Away(node string) string { return c.Silent[node] }

// Notify does nothing: nothing changes.
func (*Case) Notify(func(string)) {}

// Book is the ledger of the cluster.
func (c *Case) Book() *schedule.Book { return c.Lists.Book(c) }

// Reader reads the pod.
func (c *Case) Reader() schedule.Reader { return schedule.Reader{Driver: c.Driver, Objects: &c.Lists} }

// VolumeOf names the volume in the pod that an owner stands for. Claims are named
// after the volume, and their UIDs end in the name.
func VolumeOf(o ledger.Owner) string {
	if o.Kind == ledger.ByPod {
		return o.Inline
	}
	return o.ID[len(uidPrefix):]
}
