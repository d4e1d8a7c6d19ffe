package oversight

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/internal/ownership"
)

const (
	// guardSilent is how long a guard's Lease may go without a renewal: one comes every 8 s, or every 4 s
	// while an epoch is open. agentSilent is the same for an agent, whose renewals come every 10 s.
	guardSilent = 15 * time.Second
	agentSilent = 25 * time.Second
	// guardLate is after how long a guard's Lease is no word about now: while an epoch is open, a renewal is
	// overdue. From then until guardSilent it is neither a vote for the node nor one against it, unless the
	// guard has outlived the suspicion: see trusts.
	guardLate = 5 * time.Second
	// kubeletSilent is how long a kubelet's Lease must not have changed before the machine counts as one
	// that does not run. It is renewed every 10 s.
	kubeletSilent = 15 * time.Second
	// worthAsking is how long a guard has been silent when the volumes of its node are looked at: soon
	// enough to have watched its kubelet's Lease for kubeletSilent when the contract runs out.
	worthAsking = 12 * time.Second
	// strandedFor is how long a pod must have been seen with a dead mount before it is ended. One that has
	// completed looks the same until its kubelet says so.
	strandedFor = 15 * time.Second
)

// suspect is what a question has read about the node that it may fence, after the record.
type suspect struct {
	node string
	// lease is the version of its guard's Lease, empty if there is none or it was not read.
	lease string
	// kubelet is the last renewal of its kubelet's Lease, empty if there is none. If it was not read, the
	// kubelet counts as alive.
	kubelet     string
	kubeletRead bool
}

// view is what the contact tells at one moment.
type view struct {
	watching time.Duration
	// lost has the nodes that are suspected, and for how long.
	lost map[string]time.Duration
	// votes are those on whether the suspect is shut out.
	votes []ownership.Witness
	// vouched is for how long the suspect's guard, which renewed a moment ago, is the only witness; zero if it
	// is not.
	vouched time.Duration
	// leases are those about the suspect, nil without a contact.
	leases *ownership.Leases
}

// look tells what was seen. said has what other witnesses say about each storage node, and unlisted the same about nodes
// that are none any more. Those count in no contract.
func (c *Contact) look(s suspect, said, unlisted map[string][]ownership.Witness) view {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, v := c.Clock.Now(), view{lost: map[string]time.Duration{}}
	if c.seen == nil {
		return v // nothing is known, so nothing is proved, and the brake holds
	}
	v.watching = now.Sub(c.seen.began)
	storage := make([]string, 0, len(said))
	for node, others := range said {
		storage = append(storage, node)
		if lost := c.seen.suspicion(node, others, now); lost >= 0 {
			v.lost[node] = lost
		}
	}
	for node, others := range unlisted {
		if lost := c.seen.suspicion(node, others, now); lost >= 0 {
			v.lost[node] = lost
		}
	}
	if s.node != "" {
		kubelet := c.seen.kubeletAlive(s, now)
		v.votes = c.seen.judged(s, said[s.node], kubelet, now)
		if c.seen.renews(s.node, now) {
			v.vouched = c.seen.trusts(s.node, now) - c.seen.sight.Lapsed(s.node, now)
		}
		v.leases = c.seen.sight.Of(s.node, s.lease, storage, kubelet, now)
	}
	return v
}

// judged are the votes on whether the suspect is shut out. A guard that has renewed its Lease a moment ago
// is the only witness: its node runs and reaches the API server, whatever has become of its agent, by which
// all others know it. So an agent that is replaced costs no failover.
func (s *seen) judged(of suspect, others []ownership.Witness, kubelet bool, now time.Time) []ownership.Witness {
	if s.renews(of.node, now) {
		return []ownership.Witness{{Name: guardsLease, Alive: true}}
	}
	votes := append(s.witnesses(of.node, now), others...)
	if of.kubeletRead {
		votes = append(votes, ownership.Witness{Name: "lease of the kubelet", Alive: kubelet})
	}
	return votes
}

const guardsLease = "lease of the guard"

// renews tells whether the node's guard has renewed its Lease so lately that its node runs.
func (s *seen) renews(node string, now time.Time) bool {
	return s.guards[node] && s.sight.Lapsed(node, now) < s.trusts(node, now)
}

// trusts is for how long a renewal of the node's guard is a word about now. A guard that has renewed since the
// node was suspected is cut from the others and not from the API server, so that one late renewal is no news. A
// node that lost its power has not, and waits for no more than guardLate.
func (s *seen) trusts(node string, now time.Time) time.Duration {
	if since, suspected := s.lost[node]; suspected && now.Sub(since) > s.sight.Lapsed(node, now) {
		return guardSilent
	}
	return guardLate
}

// witnesses are the votes of the node's own leases.
func (s *seen) witnesses(node string, now time.Time) (votes []ownership.Witness) {
	if silent := s.sight.Lapsed(node, now) >= guardSilent; s.guards[node] && (silent || s.renews(node, now)) {
		votes = append(votes, ownership.Witness{Name: guardsLease, Alive: !silent})
	}
	h, ok := s.agents[node]
	if !ok {
		h.at = s.began
	}
	return append(votes, ownership.Witness{Name: "lease of the agent", Alive: now.Sub(h.at) < agentSilent})
}

// suspicion is how long the node has been suspected, negative if it is not.
func (s *seen) suspicion(node string, others []ownership.Witness, now time.Time) time.Duration {
	if !ownership.Suspected(append(s.witnesses(node, now), others...)) {
		delete(s.lost, node)
		return -1
	}
	if _, known := s.lost[node]; !known {
		s.lost[node] = now
	}
	return now.Sub(s.lost[node])
}

// kubeletAlive tells whether the suspect's kubelet may still renew its Lease. Times in the Lease are the
// node's: what counts is for how long this process has seen no other.
func (s *seen) kubeletAlive(of suspect, now time.Time) bool {
	if !of.kubeletRead {
		return true
	}
	h := s.kubelets[of.node].next(of.kubelet, now)
	s.kubelets[of.node] = h
	return now.Sub(h.at) < kubeletSilent
}

// known are the nodes whose agent has a Lease, in no order.
func (c *Contact) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		return nil
	}
	return slices.Collect(maps.Keys(c.seen.agents))
}

// Silences returns for how long the guard of each node was not seen to renew its Lease. It is nil while
// there is no contact: then nothing is known of any.
func (c *Contact) Silences() map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		return nil
	}
	silent, now := map[string]time.Duration{}, c.Clock.Now()
	for node := range c.seen.guards {
		silent[node] = c.seen.sight.Lapsed(node, now)
	}
	return silent
}

// silent tells whether the node is worth asking about: its guard has been silent for a while, or its
// leases make it suspected.
func (c *Contact) silent(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		return false
	}
	now := c.Clock.Now()
	return c.seen.quiet(node, now) || ownership.Suspected(c.seen.witnesses(node, now))
}

// quiet tells whether the node's guard has been silent for a while.
func (s *seen) quiet(node string, now time.Time) bool {
	return s.guards[node] && s.sight.Lapsed(node, now) >= worthAsking
}

// troubled are the nodes among those given whose volumes need a look, because the node's guard fell
// silent, because the node is suspected now, or because it is no more. Each change is told once: a volume
// that waits is asked about again by itself.
func (c *Contact) troubled(said map[string][]ownership.Witness) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes, now := map[string]bool{}, c.Clock.Now()
	if c.seen == nil {
		return nodes
	}
	known := maps.Clone(c.seen.guards) // also of nodes that no longer are storage nodes
	for node := range said {
		known[node] = true
	}
	for node := range known {
		is := trouble{lost: c.seen.suspicion(node, said[node], now) >= 0, silent: c.seen.quiet(node, now)}
		if c.seen.told[node] != is {
			if is.lost != c.seen.told[node].lost {
				c.tell(node, is.lost)
			}
			c.seen.told[node] = is
			nodes[node] = true
		}
	}
	return nodes
}

// tell logs that a node is suspected, or not any more.
func (c *Contact) tell(node string, lost bool) {
	said := "node answers again"
	if lost {
		said = "node looks lost"
	}
	c.Log.Info(said, "node", node)
}

// trouble is what the watchman has told of a node.
type trouble struct{ lost, silent bool }

// stranded takes the pods of a volume that have a dead mount now, and returns those that have been seen with it
// for a while.
func (c *Contact) stranded(volume string, pods []*corev1.Pod) (long []*corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		return nil
	}
	now, before, since := c.Clock.Now(), c.seen.stranded[volume], map[types.UID]time.Time{}
	for _, p := range pods {
		at, known := before[p.UID]
		if !known {
			at = now
		}
		since[p.UID] = at
		if now.Sub(at) >= strandedFor {
			long = append(long, p)
		}
	}
	if delete(c.seen.stranded, volume); len(since) > 0 {
		c.seen.stranded[volume] = since
	}
	return long
}
