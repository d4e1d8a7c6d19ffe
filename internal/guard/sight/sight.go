package sight

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

const (
	// remembered is how many renewals of a node are kept: more than a guard sends in a minute.
	remembered = 32
	// answering is how long a guard waits for the answer to a renewal. Between two renewals it may have
	// been silent for that much longer than the first one says.
	answering = 4 * time.Second
)

// Sight is what one controller has seen since its contact with the API server began. A controller that
// loses the contact makes a new one.
type Sight struct {
	began time.Time
	// events counts what was seen: renewals of different nodes are in this order.
	events int
	nodes  map[string]*node
}

// node is what was seen of one node's lease.
type node struct {
	uid, version, boot string
	members            ownership.Members
	watchdog           bool
	seen               time.Time
	renewals           []renewal // oldest first
}

// renewal is what one of them said: see guard.Renewal.
type renewal struct {
	event        int
	sent, silent time.Duration
}

// New begins with the leases of a list. Their order is not known.
func New(listed []coordinationv1.Lease, now time.Time) *Sight {
	s := &Sight{began: now, nodes: map[string]*node{}}
	for i := range listed {
		s.see(&listed[i], now)
	}
	return s
}

// See takes a Lease that the watch brought, at a time on the controller's clock. It passes over Leases that
// are not a guard's.
func (s *Sight) See(o *coordinationv1.Lease, now time.Time) {
	s.events++
	s.see(o, now)
}

func (s *Sight) see(o *coordinationv1.Lease, now time.Time) {
	name, ok := strings.CutPrefix(o.Name, v1alpha1.GuardLeasePrefix)
	if !ok {
		return
	}
	n := s.nodes[name]
	if n != nil && n.version == o.ResourceVersion {
		return // brought again
	}
	boot := o.Annotations[v1alpha1.BootAnnotation]
	if n == nil || n.uid != string(o.UID) || n.boot != boot {
		n = &node{uid: string(o.UID), boot: boot}
		s.nodes[name] = n
	}
	n.version, n.seen = o.ResourceVersion, now
	n.members = ownership.Members(o.Annotations[v1alpha1.MembersAnnotation])
	n.watchdog = o.Annotations[v1alpha1.WatchdogAnnotation] == "true"
	n.renewed(s.events, o.Annotations)
}

// renewed takes the word of a renewal. A Lease that changed without one was edited by another writer.
func (n *node) renewed(event int, says map[string]string) {
	sent, err := time.ParseDuration(says[v1alpha1.SentAnnotation])
	silent, unread := time.ParseDuration(says[v1alpha1.SilentAnnotation])
	if err != nil || unread != nil { // nothing that came before it counts
		n.renewals = nil
		return
	}
	if last := len(n.renewals) - 1; last >= 0 && sent <= n.renewals[last].sent {
		if sent < n.renewals[last].sent { // one clock does not go back
			n.renewals = nil
		}
		return
	}
	n.renewals = append(n.renewals, renewal{event, sent, silent})
	if len(n.renewals) > remembered {
		n.renewals = slices.Delete(n.renewals, 0, len(n.renewals)-remembered)
	}
}

// Lapsed is how long a node's lease was not seen to change, counted from the begin of the contact at the
// earliest.
func (s *Sight) Lapsed(name string, now time.Time) time.Duration {
	if n := s.nodes[name]; n != nil {
		return now.Sub(n.seen)
	}
	return now.Sub(s.began)
}

// Of returns the leases as the rules of ownership want them, about a node that is suspected. version is
// that of its Lease as the caller has read it, uncached, after the record of the volume: a watch that is
// late may not have brought the renewal under which the record's epoch began, and then nothing is proved.
// storage are the storage nodes that exist; kubelet tells whether the suspect's kubelet renews its own lease.
func (s *Sight) Of(suspect, version string, storage []string, kubelet bool, now time.Time) *ownership.Leases {
	l := &ownership.Leases{
		Suspect: suspect, KubeletAlive: kubelet, Lapsed: s.Lapsed(suspect, now),
		Counted: ownership.MembersOf(suspect, storage),
	}
	counted := slices.Compact(slices.Sorted(slices.Values(append([]string{suspect}, storage...))))
	l.Nodes = len(counted)
	n := s.nodes[suspect]
	if n == nil || n.version != version {
		return l
	}
	l.Boot, l.Watchdog, l.Named = n.boot, n.watchdog, n.members
	if len(n.renewals) == 0 {
		return l
	}
	last := n.renewals[len(n.renewals)-1].event
	for _, name := range counted { // the suspect itself has not renewed since
		if s.steady(name, last) >= ownership.SelfFenceAfter+ownership.SelfFenceMargin {
			l.Steady++
		}
	}
	return l
}

// steady is for how long, by its own clock, a node has certainly known of its renewals since an event.
func (s *Sight) steady(name string, since int) time.Duration {
	n := s.nodes[name]
	if n == nil {
		return 0
	}
	known := n.renewals
	first := slices.IndexFunc(known, func(r renewal) bool { return r.event > since })
	if first < 0 || first == len(known)-1 {
		return 0
	}
	known = known[first+1:] // the first one may have been sent before the event
	at := known[len(known)-1].sent
	from := at
	for _, r := range slices.Backward(known) {
		if r.silent+answering >= ownership.AwayAfter {
			break
		}
		from = r.sent
	}
	return at - from
}
