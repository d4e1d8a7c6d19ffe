package sight

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

const (
	tick  = 250 * time.Millisecond
	every = guard.RenewOpen // between two renewals
)

// machine is a node with its guard, in truth.
type machine struct {
	name    string
	offset  time.Duration // of its boot clock
	version int           // that it last knew, 0 if it must read
	heard   time.Duration // when the last renewal that was answered was sent
	tried   time.Duration
	// exempt is when the peers were last without the API, too.
	exempt time.Duration
	// sets are those over which it counts its majority.
	sets   [][]string
	writes bool
	// late is since when the rules tell it to stop. It takes as long as it may.
	late  time.Duration
	calls []*call
	// cut from the API server; deaf: the answers to its writes are lost.
	cut, deaf bool
	peers     map[string]bool // that it reaches
}

// call is a renewal on its way.
type call struct {
	sent, stores, answers time.Duration
	base                  int
	lease                 *coordinationv1.Lease
	members               []string
	stored, ended         bool
}

// world is an API server, its nodes and a controller that watches it.
type world struct {
	dice    *rand.Rand
	now     time.Duration
	rv      int
	stored  map[string]*coordinationv1.Lease
	nodes   []*machine
	names   []string      // all nodes
	storage []string      // the storage nodes that exist
	slow    time.Duration // the most that storing takes
	watch   time.Duration // how late the watch is
	pending []event
	sight   *Sight
	proofs  int
	wrong   string
	// mistaken: guards count only over the set of which they know that it is stored.
	mistaken bool
}

type event struct {
	at    time.Duration
	lease *coordinationv1.Lease
}

func newWorld(seed uint64) *world {
	w := &world{dice: rand.New(rand.NewPCG(seed, 2)), stored: map[string]*coordinationv1.Lease{}, now: time.Hour}
	for i := range 3 + w.dice.IntN(3) {
		m := &machine{name: fmt.Sprint("n", i), offset: time.Duration(w.dice.IntN(1000)) * time.Second, heard: w.now, peers: map[string]bool{}}
		w.nodes, w.names = append(w.nodes, m), append(w.names, m.name)
	}
	for _, m := range w.nodes {
		for _, name := range w.names {
			m.peers[name] = true
		}
	}
	w.storage = w.names
	for _, m := range w.nodes {
		m.sets = [][]string{w.names}
	}
	w.nodes[0].writes = true
	w.sight = New(nil, w.clock())
	return w
}

func (w *world) clock() time.Time { return time.Unix(0, 0).Add(w.now) }

func (w *world) chance(n int) bool { return w.dice.IntN(n) == 0 }

func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.dice.Int64N(int64(d/tick)+1)) * tick
}

// weather changes what is cut, lost and slow.
func (w *world) weather() {
	m := w.nodes[w.dice.IntN(len(w.nodes))]
	switch w.dice.IntN(9) {
	case 0:
		w.nodes[0].cut = true
	case 1:
		m.cut = !m.cut
	case 2:
		m.deaf = !m.deaf
	case 3:
		w.slow = w.upTo(30 * time.Second)
	case 4:
		w.slow = 0
	case 5:
		w.watch = w.upTo(60 * time.Second)
	case 6:
		other := w.names[w.dice.IntN(len(w.names))]
		m.peers[other] = !m.peers[other]
	case 7: // storage nodes come and go
		w.storage = w.names[:1+w.dice.IntN(len(w.names))]
	case 8:
		w.storage = w.names
	}
}

// step lets a quarter of a second pass.
func (w *world) step() {
	w.now += tick
	for _, m := range w.nodes {
		w.store(m)
		w.guard(m)
	}
	for len(w.pending) > 0 && w.pending[0].at <= w.now {
		w.sight.See(w.pending[0].lease, w.clock())
		w.pending = w.pending[1:]
	}
	suspect := w.nodes[0]
	version := ""
	if o := w.stored[suspect.name]; o != nil {
		version = o.ResourceVersion
	}
	if _, proved := ownership.ContractProves(w.sight.Of(suspect.name, version, w.storage, false, w.clock())); proved {
		w.proofs++
		if suspect.writes && w.wrong == "" {
			w.wrong = fmt.Sprintf("%v after its last answer %s is called fenced and writes", w.now-suspect.heard, suspect.name)
		}
	}
}

// store is the API server's side of a machine's calls.
func (w *world) store(m *machine) {
	for _, c := range m.calls {
		if !c.stored && c.stores <= w.now {
			c.stored = true
			if old := w.stored[m.name]; old == nil && c.base == 0 || old != nil && old.ResourceVersion == strconv.Itoa(c.base) {
				w.rv++
				c.lease.ResourceVersion = strconv.Itoa(w.rv)
				w.stored[m.name] = c.lease
				at := w.now + w.watch
				if len(w.pending) > 0 { // a watch keeps the order
					at = max(at, w.pending[len(w.pending)-1].at)
				}
				w.pending = append(w.pending, event{at: at, lease: c.lease})
			}
		}
		if c.ended {
			continue
		}
		version, _ := strconv.Atoi(c.lease.ResourceVersion)
		switch {
		case c.stored && version > 0 && c.answers <= w.now && w.now-c.sent < answering && !m.deaf && !m.cut:
			c.ended, m.heard, m.version, m.sets = true, c.sent, version, [][]string{c.members}
		case w.now-c.sent >= answering:
			c.ended, m.version = true, 0
		}
	}
	m.calls = slices.DeleteFunc(m.calls, func(c *call) bool { return c.stored && c.ended })
}

// guard is the guard's side: it stops its writers, or renews.
func (w *world) guard(m *machine) {
	silent := w.now - m.heard
	contact := &ownership.Contact{SinceRenewal: w.now - max(m.heard, m.exempt), Sets: m.sets}
	for _, p := range w.nodes {
		if p != m && m.peers[p.name] && p.peers[m.name] {
			contact.Peers = append(contact.Peers, ownership.PeerContact{Node: p.name, SinceRenewal: w.now - p.heard})
		}
	}
	if _, away := ownership.APIIsAway(contact); away && m.late == 0 {
		m.exempt = w.now
		contact.SinceRenewal = 0
	}
	contact.Peers = nil
	stop, _ := ownership.MustStop(contact)
	if !stop {
		m.late = 0
	} else if m.late == 0 {
		m.late = w.now
	}
	if m.writes && stop && w.now-m.late >= ownership.SelfFenceMargin-2*time.Second {
		m.writes = false
	}
	busy := slices.ContainsFunc(m.calls, func(c *call) bool { return !c.ended })
	if m.cut || busy || w.now-m.tried < every || m.late != 0 && m.writes {
		return
	}
	m.tried = w.now
	members := w.storage
	if !slices.Contains(members, m.name) {
		members = append([]string{m.name}, members...)
	}
	if old := w.stored[m.name]; m.version == 0 && old != nil {
		m.version, _ = strconv.Atoi(old.ResourceVersion)
	}
	if !w.mistaken && !slices.ContainsFunc(m.sets, func(s []string) bool { return slices.Equal(s, members) }) {
		m.sets = append(slices.Clone(m.sets), members)
	}
	o := leaseOf(m.name, members, w.now+m.offset, silent)
	stores := w.now + w.upTo(w.slow)
	m.calls = append(m.calls, &call{sent: w.now, stores: stores, answers: stores + w.upTo(time.Second), base: m.version, lease: o, members: members})
}

// play lets a world of faults go on for ten minutes.
func play(seed uint64, change ...func(*world)) *world {
	w := newWorld(seed)
	for _, c := range change {
		c(w)
	}
	for range int(10 * time.Minute / tick) {
		if w.now > time.Hour+time.Minute && w.chance(80) {
			w.weather()
		}
		w.step()
	}
	return w
}

func TestNoNodeThatMayWriteIsCalledFenced(t *testing.T) {
	worlds, proved := 600, 0
	if testing.Short() || raceDetector {
		worlds = 100
	}
	for seed := range uint64(worlds) {
		w := play(seed)
		if w.wrong != "" {
			t.Errorf("world %d: %s", seed, w.wrong)
		}
		if w.proofs > 0 {
			proved++
		}
	}
	t.Logf("%d worlds, a proof in %d", worlds, proved)
	if proved < worlds/10 {
		t.Error("there are too few proofs to show anything")
	}
}

func TestAGuardThatCountsOnlyOverWhatItKnowsToBeStoredIsFoundOut(t *testing.T) {
	for seed := uint64(900); seed < 2000; seed++ { // the first world that shows it is 908
		if w := play(seed, func(w *world) { w.mistaken = true }); w.wrong != "" {
			t.Logf("world %d: %s", seed, w.wrong)
			return
		}
	}
	t.Error("the worlds cannot show the mistake")
}
