package shell

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/publish/kubeletdir"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/replicate/cert"
)

// agent is a life of the agent of shared disks, as internal/agent puts it together.
type agent struct {
	p     *process
	owner *owner.Owner
	// calls is the Owner as a kubelet's calls have it.
	calls staging.Owner
	csi   *csi.Node
	// vault has the copies of its machine; nil where volumes are shared disks.
	vault *vault
	loop  *owner.Loop
	kept  journal.Journal
	locks *keyed.Locks[string]
}

// node is owner.Node, with ids that follow from the seed and journal entries that may fail.
type node struct {
	*owner.Node
	p *process
}

// FreshID implements owner.World.
func (n *node) FreshID() string { return n.p.freshID() }

// Load implements owner.World.
func (n *node) Load(volume string) (journal.Kept, bool, error) {
	return n.p.m.memo.load(n.Journal, volume)
}

// Store implements owner.World.
func (n *node) Store(k journal.Kept) error {
	return n.p.effect(n.p.ctx, local, "Store", k.Volume, func() error {
		err := n.Node.Store(k)
		if err == nil {
			n.p.w.oracle.keeps(n.p.m, k)
			n.p.w.tells(n.p.name, "keeps of %s: promised %v, opened %v, closed %v, flushed %v, pods may have %v",
				n.p.w.short(k.Volume), k.Promise.Epoch, k.Opened, k.Closed, k.Flushed, k.Taken.Epoch)
		}
		return err
	})
}

func (m *machine) agents() {
	p := m.begins("agent")
	x := m.w.mistake
	a := &agent{p: p, kept: journal.Journal{Files: x.files.of(p, m.disk)}, locks: &keyed.Locks[string]{}}
	a.loop = owner.NewLoop(p.ctx, ticking{p: p}, logr.Discard())
	api := &caller{p: p}
	a.owner = owner.New(owner.Config{
		Node: m.name, Boot: m.bootID(), Locks: x.locks.of(p, a.locks), Medium: a.medium(), Rules: ownership.NodeRules(),
		World: x.world.of(p, &node{p: p, Node: x.node.of(p, &owner.Node{
			Journal: a.kept, Peers: peers{p}, Live: m.w.driver.Live(api), Status: api,
			Guard: door{p}, Holding: m.holding, MountTable: m.table, ShutDownAt: m.shutDownAt, Mounter: mounter{p: p}, Cover: m.covers,
			Kubelet: kubeletdir.New(kubeletDir), Pods: a.pods, Exists: m.exists,
			OutOfService: func(context.Context) (bool, error) { return m.tainted.Load(), nil },
			Clock:        clock.RealClock{}, Warn: func(string, string) {},
		})}),
		Poke: a.loop.Poke, Background: a.loop.Background, Log: m.w.log(p),
	})
	a.calls = x.calls.of(p, a.owner)
	volumes := newCaches(p, nil).of(kindOf(&v1alpha1.Volume{}))
	a.csi = a.serves(specs{volumes})
	m.w.locked(func() { m.agent = a })
	volumes.tells(toolscache.ResourceEventHandlerFuncs{
		AddFunc: a.seen, UpdateFunc: func(_, o any) { a.seen(o) }, DeleteFunc: a.seen,
	})
	go func() { _ = a.loop.Run(a.owner) }()
}

// medium is what the volumes' replicas are.
func (a *agent) medium() owner.Medium {
	x, p := a.p.w.mistake, a.p
	if p.m.pool == nil {
		return owner.Attachments(x.disks.of(p, disks{p}), owner.Locate)
	}
	a.vault = newVault(p)
	return owner.Copies(x.copies.of(p, a.vault))
}

// seen has a volume tended that concerns this node.
func (a *agent) seen(object any) {
	v, ok := object.(*v1alpha1.Volume)
	if !ok {
		return
	}
	_, known, err := a.p.m.memo.load(a.kept, v.Name)
	here := func(e v1alpha1.OwnedReplica) bool { return e.Node == a.p.m.name }
	if r := v.Status.Ownership; known || err != nil || v.Wish(a.p.m.name) != nil || r != nil && (r.Primary.Node == a.p.m.name || slices.ContainsFunc(r.Replicas, here)) {
		a.loop.Poke(v.Name, 0)
	}
}

// peers asks nodes for their copies, each at the same time. They answer with the product's code.
type peers struct{ p *process }

const peersAnswer = 900 * time.Millisecond

// Ask implements owner.Peers and oversight.Peers.
func (x peers) Ask(ctx context.Context, volume string, nodes []string) (answers []ownership.Peer) {
	ctx, cancel := context.WithTimeout(ctx, peersAnswer)
	defer cancel()
	asker := x.p.m.name
	if x.p.kind == "controller" {
		asker = cert.Controllers
	}
	came := make([]*ownership.Peer, len(nodes))
	done := make(chan struct{}, len(nodes))
	for i, n := range nodes {
		d := x.p.dice("Ask "+n, volume)
		go func() {
			defer func() { done <- struct{}{} }()
			if waits(ctx, d.upTo(10*time.Millisecond)) != nil {
				return
			}
			m := x.p.w.machine(n)
			if m == nil || m.answering(x.p.m) == nil {
				return
			}
			var a *agent
			x.p.w.locked(func() { a = m.agent })
			if a == nil || a.p.isDead() {
				return
			}
			answer := make(chan *ownership.Peer, 1)
			go func() {
				if p, may, err := a.owner.Peer(ctx, volume, asker); err == nil && may {
					answer <- &p
					return
				}
				answer <- nil
			}()
			select {
			case <-ctx.Done():
			case p := <-answer:
				if m.linked(x.p.m) {
					came[i] = p
				}
			}
		}()
	}
	for range nodes {
		<-done
	}
	for _, p := range came {
		if p != nil {
			answers = append(answers, *p)
		}
	}
	return answers
}
