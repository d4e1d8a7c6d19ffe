package owner_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/record"
)

const theVolume = "pvc-00000000-0000-0000-0000-000000000001"

var theDisk = shared.Disk{Volume: theVolume, Handle: "lun1", Identity: "wwn:1"}

// mistakes are those of a shell. The zero value is the product.
type mistakes struct {
	NilOnStoreError, NilOnReadError, NoFsync, NoLocks, ConflictSwallowed, StaleReads bool
	GuardNotTold, BlindReserve, AnsweredEarly, UnmountUnproved                       bool
}

// cluster is one volume on a shared disk, its nodes, an API server and a controller.
type cluster struct {
	ctx      context.Context
	s        *schedule
	mistake  mistakes
	now      time.Duration
	ids      int
	machines []*machine
	target   *simdisk.Target
	faulty   bool
	calm     int // how rare faults are
	// versions of the Volume, the present one last. down: the API server does not answer. gone: it says
	// that there is no such Volume.
	versions []*v1alpha1.Volume
	revision int
	down     bool
	gone     bool
	restored int
	// unanswered is how often a machine has waited in vain for the answer of another.
	unanswered int
	stuck      error // of unmounts that no kubelet asked for
	// around is what a test puts between an agent and its world.
	around func(owner.World) owner.World
	plot   plot
	// effects are the names of those that have happened.
	effects []string
	// plan is what the controller has decided and not written yet.
	plan *v1alpha1.Volume

	oracle
}

func newCluster(ctx context.Context, seed uint64, nodes int, mistake mistakes) *cluster {
	s := newSchedule(seed)
	c := &cluster{ctx: ctx, s: s, mistake: mistake, faulty: true, oracle: newOracle(), around: func(w owner.World) owner.World { return w }}
	c.target = simdisk.New(simdisk.Config{Identity: theDisk.Identity, Shares: nodes, Persistent: true})
	first := v1alpha1.Epoch{Number: 1, ID: "first"}
	c.put(&v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: theVolume},
		Spec: v1alpha1.VolumeSpec{VolumeMode: v1alpha1.Filesystem, Replication: v1alpha1.Replication{
			Factor: int32(min(nodes, 2)), Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
			Attachments: &v1alpha1.Attachments{MaxShares: int32(nodes), Persistent: true},
		}},
		Status: v1alpha1.VolumeStatus{Ownership: &v1alpha1.Ownership{
			Epoch: first, Primary: v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased}, Clean: true, Lineage: []v1alpha1.Branch{{Epoch: first}},
		}},
	})
	c.calm = []int{1, 4, 12}[s.dice.IntN(3)]
	c.plot = newPlot(s, nodes)
	for i := range nodes {
		m := &machine{c: c, name: string(rune('a' + i)), disk: journaltest.New()}
		m.disk.Lazy = mistake.NoFsync
		c.machines = append(c.machines, m)
		m.boots()
	}
	c.machines[0].wanted = true
	return c
}

// boots begins a new boot of the machine. Its guard starts fenced.
func (m *machine) boots() {
	m.boot++
	m.kernel, m.device, m.late, m.guarded, m.fenced, m.slept = m.c.target.Node(m.name), nil, nil, lineage.Epoch{}, true, false
	m.served, m.believed, m.renewed = false, nil, m.c.now
	m.starts()
}

func (c *cluster) put(v *v1alpha1.Volume) {
	c.revision++
	v = v.DeepCopy()
	v.ResourceVersion = strconv.Itoa(c.revision)
	c.versions = append(c.versions, v)
}

func (c *cluster) current() *v1alpha1.Volume { return c.versions[len(c.versions)-1] }

func (c *cluster) read() (*v1alpha1.Volume, error) {
	switch {
	case c.down:
		return nil, errFault
	case c.gone:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "volumes"}, theVolume)
	}
	return c.current().DeepCopy(), nil
}

func (c *cluster) replace(who string, v *v1alpha1.Volume) error {
	if c.down {
		return errFault
	}
	old := c.current()
	if v.ResourceVersion != old.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "volumes"}, v.Name, fmt.Errorf("it changed"))
	}
	c.judgeRecord(who, old.Status.Ownership, v.Status.Ownership)
	c.put(v)
	for _, m := range c.machines {
		m.poked = true // the watch
	}
	return nil
}

// restore brings the API server back from a backup.
func (c *cluster) restore() {
	if c.restored > 0 || len(c.versions) < 3 {
		return
	}
	c.restored++
	c.put(c.versions[len(c.versions)-2-c.s.dice.IntN(min(6, len(c.versions)-1))])
	for _, m := range c.machines {
		m.poked = true
	}
}

// durable is what the journal has after a loss of power now.
func (m *machine) durable() journal.Kept {
	k, _, err := journal.Journal{Files: m.disk.Durable()}.Load(theVolume)
	if err != nil {
		return journal.Kept{}
	}
	return k
}

func (m *machine) answers() bool { return !m.slept && !m.agent.dead }

// peer is the machine's answer to others. It is not part of the schedule: an answer comes at once.
func (m *machine) peer() (ownership.Peer, bool) {
	k, found, err := journal.Journal{Files: m.disk}.Load(theVolume)
	return ownership.Peer{Node: m.name, Copy: k.Copy()}, found && err == nil
}

// kubelet makes the call that is due.
func (m *machine) kubelet() {
	c, p := m.c, m.agent
	switch {
	case m.wanted && !m.served:
		c.s.begin(p, "kubelet", func() {
			m.giving = false
			m.said = m.owner.Take(c.ctx, theVolume, m.mounts())
			m.served = m.said == nil
		})
	case !m.wanted && (m.served || m.device != nil):
		restored := c.restored
		c.s.begin(p, "kubelet", func() {
			off := staging.Off{
				Unmount: func(context.Context) error {
					if !c.s.yield() {
						return errDead
					}
					m.unmounts()
					return nil
				},
				Left: func(context.Context) ([]string, error) { return (&world{m: m}).Mounts(theDiskContent) },
			}
			m.giving = true
			err := m.owner.Give(c.ctx, theVolume, off)
			m.said = err
			if c.mistake.AnsweredEarly && m.device == nil {
				err = nil
			}
			if err == nil {
				m.served = false
				c.judgeGiven(m, restored == c.restored)
			}
		})
	}
}

// mounts returns the step that mounts the volume in the epoch that the node has opened.
func (m *machine) mounts() func(context.Context) error {
	return func(context.Context) error {
		if !m.c.s.yield() {
			return errDead
		}
		if m.device != nil {
			return nil
		}
		k, _, err := journal.Journal{Files: m.disk}.Load(theVolume)
		if err != nil {
			return err
		}
		m.c.judgeMount(m, k.Opened)
		if m.device, err = m.kernel.Open(k.Opened); err == nil {
			m.epoch = k.Opened
		}
		return err
	}
}

// unmounts waits for the commands that are on their way.
func (m *machine) unmounts() {
	if m.device != nil {
		for len(m.late) > 0 {
			m.lands()
		}
		m.device.Close()
		m.device = nil
	}
}

// writes lets the pod write, in one of the ways in which a write reaches a disk.
func (m *machine) writes() {
	c := m.c
	if m.device == nil {
		return
	}
	c.ids++
	data := strconv.Itoa(c.ids)
	switch c.s.dice.IntN(3) {
	case 0:
		c.judgeWrite(m.epoch, m.device.Write(data))
	case 1:
		m.device.Buffer(data)
		c.buffered[m] = m.epoch
	case 2:
		if w, err := m.device.Send(data); err == nil {
			m.late = append(m.late, w)
		}
	}
}

// controls lets the controller decide, or write what it decided before.
func (c *cluster) controls() {
	if c.plan != nil {
		_ = c.replace("controller", c.plan)
		c.plan = nil
		return
	}
	object, err := c.read()
	if err != nil {
		return
	}
	v, err := record.From(object)
	if err != nil {
		c.fail("the record cannot be read: %v", err)
		return
	}
	f := ownership.ControllerFacts{Now: time.Unix(0, 0).Add(c.now), Record: v, Watching: time.Hour}
	for _, m := range c.machines {
		f.Nodes = append(f.Nodes, ownership.Machine{Name: m.name, Lost: m.slept, Fits: true, Slots: 1})
		if p, known := m.peer(); known && m.answers() {
			f.Peers = append(f.Peers, p)
		}
		if m.wanted {
			f.Wanted = append(f.Wanted, m.name)
		}
		if m.name == v.Primary.Node {
			f.Witnesses = append(f.Witnesses, ownership.Witness{Name: "x", Alive: !m.slept && !(c.faulty && c.s.chance(50))})
			if v.Primary.Boot != m.bootID() {
				f.Proofs = append(f.Proofs, ownership.Proof{Kind: ownership.PowerOff, Node: m.name, Boot: v.Primary.Boot})
			}
		}
	}
	if a := ownership.OverseeRules.Decide(&f); a.Verb == ownership.Record {
		if c.plan, err = record.Into(object, a.Next); err != nil {
			c.fail("the controller's record cannot be written: %v", err)
		}
	}
}
