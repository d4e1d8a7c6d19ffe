package explore

import (
	"fmt"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

const (
	maxNodes    = 4
	controllers = 2
	// Endpoints of links: the nodes, then the controllers, then the API server.
	api       = maxNodes + controllers
	endpoints = api + 1
)

// Config says how a world starts.
type Config struct {
	Kind   ownership.Kind
	Nodes  int
	Factor int
	// Watchdog: the nodes' self-fence contract covers a dead agent.
	Watchdog bool
	// Eager: a snapshot is due whenever something was written.
	Eager bool
	// Automatic failover; otherwise a person approves.
	Automatic bool
	// Shares, Persistent and Yields are for shared disks: see ownership.Sharing.
	Shares             int
	Persistent, Yields bool
	// Many: several nodes write the shared disk at once.
	Many bool
	// Known: the target knows a node's next session as the one that ended.
	Known bool
	// Lasting: before all faults end, the primary dies and stays dead for a while.
	Lasting bool
	// Away: before all faults end, the API server is away for a while, and the pods end.
	Away bool
	// Partial: the volume is being created. The first node has its empty snapshot, the
	// other replicas are only recorded; a shared disk is attached nowhere.
	Partial bool
}

func (c Config) String() string {
	s := fmt.Sprintf("kind=%v nodes=%d factor=%d watchdog=%t automatic=%t", c.Kind, c.Nodes, c.Factor, c.Watchdog, c.Automatic)
	if c.Kind.Traits().Attaches {
		s += fmt.Sprintf(" shares=%d persistent=%t yields=%t", c.Shares, c.Persistent, c.Yields)
	}
	if c.Many {
		s += fmt.Sprintf(" many=true known=%t", c.Known)
	}
	if c.Lasting {
		s += " lasting=true"
	}
	if c.Away {
		s += " away=true"
	}
	if c.Partial {
		s += " partial=true"
	}
	return s
}

// World is one volume in a small cluster. It is a value: slices and pointers in
// it are never changed in place, so a copy of the struct is a snapshot.
type World struct {
	cfg   Config
	rules *Rules

	now     time.Duration
	server  server
	nodes   [maxNodes]node
	ctl     [controllers]controller
	disk    simDisk
	slots   slots
	cut     [endpoints]uint16 // bit j of cut[i]: i and j cannot talk
	streams []stream
	writes  uint32

	truth truth
	// Violation is the first broken invariant, empty while all hold.
	Violation string
	story     *Story
	scratch   *scratch
	// verbose: the story also tells how the world comes to rest.
	verbose bool
}

// scratch is memory for one decision at a time. It is no part of the state.
type scratch struct {
	node       ownership.NodeFacts
	controller ownership.ControllerFacts
	peers      [maxNodes]ownership.Peer
	machines   [maxNodes]ownership.Machine
	witnesses  [maxNodes + 2]ownership.Witness
	wanted     [maxNodes]string
	verb       ownership.Verb // the last that an agent decided
}

// server is the API server: the current record and the versions before it.
type server struct {
	down    bool
	current *version
}

type version struct {
	volume *ownership.Volume
	rv     uint32
	before *version
}

// node is a machine with its agent. The first part survives a crash.
type node struct {
	copy     ownership.Copy
	data     []*content // the contents of copy.Points
	head     *content
	branches []*content
	boot     uint8
	tainted  bool
	leased   uint8 // the boot that renewed the lease last
	deaf     bool  // the API server stores its renewals, and the answers are lost
	members  uint8 // the storage nodes that the lease names, a bit each
	// sets are those over which the node counts its majority, a bit each: the one that its last renewal
	// with an answer named, and each that it has sent since.
	sets     uint16
	deleted  bool  // its Node object is gone
	cordoned bool  // no pod is placed on it, and attachments shall be elsewhere
	full     bool  // there is no room for a larger copy
	poweroff uint8 // the boots up to here have a power-off record
	wrecked  uint8 // media losses

	up, paused, agent bool
	mounted           bool
	stopped           bool // unmounted and not yet unstaged
	woke              bool // from a pause, and has not looked at its lease yet
	wanted            bool
	refused           bool // it had no room when it last tried
	lapsed            bool // the rules said to stop, and it may still have an epoch from before
	// late is the epoch of a command to the shared disk that is on its way, zero if none is.
	late          lineage.Epoch
	served        bool // the kubelet got the mount that the pod wants, and does not ask again
	sinceSnapshot time.Duration
	sinceStored   time.Duration // since the API server stored a renewal
	sinceRenewal  time.Duration // since the node had an answer to one
	silent        time.Duration // what sinceRenewal was when the stored renewal was sent
	sinceKubelet  time.Duration
	heard         *[maxNodes]ownership.Copy // the last answers of the peers, nil if none
	pending       *pending
}

// pending is a decision that is made and not yet carried out. It does not change.
type pending struct {
	action  ownership.Action
	read    *version
	factor  int
	wrecked [maxNodes]uint8
	unread  bool // the record could not be read
	ignored bool // a reachable node knew of an epoch that the decision ignores
	brake   bool
	ordered bool // an administrator or the primary itself has said that the epoch is over
	age     time.Duration
	// What a controller could know: the nodes with a pod, those whose slot another volume's primary
	// waits for, those that are leaving, those that it does not see, and those of them that were deleted, a bit each, and how
	// long the volume was unused.
	wanted, waiting, leaving, unseen, deleted uint8
	unused                                    time.Duration
	// decided is when a controller made the decision.
	decided time.Duration
}

type controller struct {
	lapsed, steady [maxNodes]time.Duration
	suspect        time.Duration
	watching       time.Duration
	lostFor        [maxNodes]time.Duration
	oldProofs      []ownership.Proof
	blocked        lineage.Point
	pending        *pending
}

// stream is a snapshot on its way. It may be late, repeated or lost.
type stream struct {
	from, to     int
	header       ownership.Stream
	base, target *content
}

var names = [endpoints]string{"a", "b", "c", "d", "controller-0", "controller-1", "api"}

func indexOf(name string) int {
	for i := range maxNodes {
		if names[i] == name {
			return i
		}
	}
	return -1
}

// New builds a world at rest: the volume is created, released in its first
// epoch, and its first, empty snapshot is on every replica.
func New(cfg Config, rules *Rules) *World {
	w := &World{cfg: cfg, rules: rules, scratch: &scratch{}}
	first := lineage.Epoch{Number: 1, ID: "first"}
	point := lineage.Point{Epoch: first, Seq: 1}
	v := &ownership.Volume{
		Kind: cfg.Kind, Factor: cfg.Factor, Size: firstSize, Epoch: first, Clean: true,
		Lineage:  lineage.Lineage{{Epoch: first}},
		Failover: ownership.Failover{Automatic: cfg.Automatic, MaxDataLoss: maxDataLoss},
	}
	empty := (*content)(nil).add(0, 0)
	data := cfg.Kind.Traits().Data
	if data {
		v.RecoveryPoint = point
	}
	for i := 0; i < cfg.Nodes; i++ {
		n := &w.nodes[i]
		n.up, n.agent, n.boot, n.leased, n.members = true, true, 1, 1, 1<<cfg.Nodes-1
		n.sets = 1 << n.members
		if i >= cfg.Factor || cfg.Partial && !data {
			continue
		}
		if cfg.Partial && i > 0 {
			v.Replicas = append(v.Replicas, ownership.Replica{Node: names[i]})
			continue
		}
		r := ownership.Replica{Node: names[i], State: ownership.Ready}
		n.copy = ownership.Copy{Exists: data, Promise: ownership.Promise{Epoch: first, Lineage: v.Lineage}}
		if data {
			r.Point = point
			n.copy.Size = firstSize
			n.copy.Points, n.data, n.head = []lineage.Point{point}, []*content{empty}, empty
		}
		v.Replicas = append(v.Replicas, r)
	}
	if cfg.Kind.Traits().Reserves {
		w.disk = newDisk(&cfg)
		w.nodes[0].late = w.disk.keys[0].Epoch
		v.Sharing = ownership.Sharing{MaxShares: cfg.Shares, Yields: cfg.Yields, Persistent: cfg.Persistent, ManyWriters: cfg.Many}
	}
	for c := range w.ctl {
		w.ctl[c].watching = ownership.WatchFirst
	}
	w.server.current = &version{volume: v, rv: 1}
	w.truth.begin(first, point, empty)
	return w
}

const maxDataLoss = 5 * time.Minute

// firstSize is how large the volume is made, and maxSize how large it may get, in units that do not matter.
const firstSize, maxSize = 1, 4

// freshID is an id that no epoch has had or will have: it is made of the node and
// the number of epochs opened so far, so that equal worlds give equal ids.
func (w agents) freshID(i int) string {
	if w.rules.Conduct.NoIDs {
		return ""
	}
	return idNames[len(w.truth.issued)%len(idNames)][i]
}

var idNames = func() (out [256][maxNodes]string) {
	for i := range out {
		for j := range out[i] {
			out[i][j] = fmt.Sprintf("%s%d", names[j], i)
		}
	}
	return out
}()

func (w *World) clock() time.Time { return time.Unix(0, 0).Add(w.now) }

func (w *World) linked(i, j int) bool {
	if i == api || j == api {
		if w.server.down {
			return false
		}
	}
	return w.cut[i]&(1<<j) == 0
}

// answers tells whether j would answer i.
func (w *World) answers(i, j int) bool {
	n := &w.nodes[j]
	return j < w.cfg.Nodes && n.up && !n.paused && n.agent && w.linked(i, j)
}

func (w *World) runs(i int) bool { n := &w.nodes[i]; return n.up && !n.paused && n.agent }

func (w *World) fail(format string, args ...any) {
	if w.Violation == "" {
		w.Violation = fmt.Sprintf(format, args...)
	}
}
