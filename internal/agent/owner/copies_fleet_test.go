package owner_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/record"
)

var silent = logr.Discard()

// copyMistakes are those of a shell. The zero value is the product.
type copyMistakes struct {
	NilOnReadError, NoLocks, ConflictSwallowed, StaleReads, GuardNotTold bool
	AnsweredEarly, MountsAsItIs, ForgetsBranches                         bool
}

// fleet is one volume of copies, its nodes, an API server and a controller.
type fleet struct {
	ctx     context.Context
	s       *schedule
	mistake copyMistakes
	now     time.Duration
	ids     int
	keepers []*keeper
	faulty  bool
	calm    int // how rare faults are
	// versions of the Volume, the present one last. down: the API server does not answer.
	versions []*v1alpha1.Volume
	revision int
	down     bool
	plot     nap
	effects  []string
	// plan is what the controller has decided and not written yet.
	plan *v1alpha1.Volume

	copyOracle
}

func newFleet(ctx context.Context, seed uint64, nodes int, mistake copyMistakes) *fleet {
	s := newSchedule(seed)
	f := &fleet{ctx: ctx, s: s, mistake: mistake, faulty: true, now: time.Hour, copyOracle: newCopyOracle()}
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: theVolume},
		Spec: v1alpha1.VolumeSpec{
			VolumeMode: v1alpha1.Filesystem, Capacity: *resource.NewQuantity(16*copyUnit, resource.BinarySI),
			Replication: v1alpha1.Replication{
				Factor: 2, Kind: v1alpha1.ReplicationSnapshots,
				Failover: &v1alpha1.Failover{Automatic: true, MaxDataLoss: &metav1.Duration{Duration: time.Hour}},
			},
		},
	}
	f.put(v)
	f.calm = []int{1, 4, 12}[s.dice.IntN(3)]
	f.plot = newNap(s, nodes)
	names := []string{}
	for i := range nodes {
		k := &keeper{f: f, name: string(rune('a' + i)), disk: journaltest.New()}
		k.disks = memory.NewDisks(memory.PoolConfig{PoolRef: copyPool, Total: 200 * copyUnit})
		f.keepers, names = append(f.keepers, k), append(names, k.name)
		k.boots()
	}
	parameters := ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 16 * copyUnit, Failover: ownership.Failover{Automatic: true, MaxDataLoss: time.Hour}}
	first, err := record.Into(f.current(), ownership.Begin(parameters, "a", names[:2], "first"))
	if err != nil {
		f.fail("the first record: %v", err)
		return f
	}
	f.put(first)
	f.keepers[0].wanted = true
	return f
}

func (f *fleet) time() time.Time { return time.Unix(0, 0).Add(f.now) }

func (f *fleet) put(v *v1alpha1.Volume) {
	f.revision++
	v = v.DeepCopy()
	v.ResourceVersion = strconv.Itoa(f.revision)
	f.versions = append(f.versions, v)
	for _, k := range f.keepers {
		k.poked = true // the watch
	}
}

func (f *fleet) current() *v1alpha1.Volume { return f.versions[len(f.versions)-1] }

func (f *fleet) read() (*v1alpha1.Volume, error) {
	if f.down {
		return nil, errFault
	}
	return f.current().DeepCopy(), nil
}

func (f *fleet) replace(who string, v *v1alpha1.Volume) error {
	if f.down {
		return errFault
	}
	if v.ResourceVersion != f.current().ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "volumes"}, v.Name, fmt.Errorf("it changed"))
	}
	f.judgeRecord(f, who, f.current().Status.Ownership, v.Status.Ownership)
	f.put(v)
	return nil
}

// peerOf asks a node's agent, as the peers' client does. The answer is no part of the schedule: it comes at once.
func (f *fleet) peerOf(_ context.Context, k *keeper, asker string) (p ownership.Peer, may bool, err error) {
	p, known := k.peer()
	v, err := record.From(f.current())
	if err != nil || !known {
		return p, false, err
	}
	if e, counted := v.Replica(asker); counted && e.State == ownership.Removing {
		if newest := v.Newest(p.Copy.Points); !newest.IsZero() {
			if hold, ok := ownership.Confirm(&p.Copy, asker, newest, f.time()); ok {
				p.Confirmed = k.replicator().Hold(f.ctx, theVolume, hold) == nil
			}
		}
	}
	return p, true, nil
}

// kubelet makes the call that is due.
func (k *keeper) kubelet() {
	f, p := k.f, k.agent
	switch {
	case k.wanted && !k.served:
		f.s.begin(p, "kubelet", func() {
			k.said = k.owner.Take(f.ctx, theVolume, k.mounts)
			k.served = k.said == nil
		})
	case !k.wanted && (k.served || !k.epoch.IsZero()):
		f.s.begin(p, "kubelet", func() {
			err := k.owner.Give(f.ctx, theVolume, staging.Off{
				Unmount: func(context.Context) error {
					if !f.s.yield() {
						return errDead
					}
					k.unmounts()
					return nil
				},
				Left: func(context.Context) ([]string, error) {
					if k.epoch.IsZero() {
						return nil, nil
					}
					return []string{staged}, nil
				},
			})
			if k.said = err; f.mistake.AnsweredEarly && k.epoch.IsZero() {
				err = nil
			}
			if err == nil {
				k.served = false
				f.judgeGiven(k)
			}
		})
	}
}

// mounts is the step that mounts the volume in the epoch that the copy is open in.
func (k *keeper) mounts(context.Context) error {
	if !k.f.s.yield() {
		return errDead
	}
	if k.epoch.IsZero() {
		k.epoch = k.state().Opened
		k.f.judgeMount(k)
	}
	return nil
}

// controls lets the controller decide, or write what it decided before.
func (f *fleet) controls() {
	if f.plan != nil {
		_ = f.replace("controller", f.plan)
		f.plan = nil
		return
	}
	object, err := f.read()
	if err != nil {
		return
	}
	v, err := record.From(object)
	if err != nil {
		f.fail("the record cannot be read: %v", err)
		return
	}
	c := ownership.ControllerFacts{Now: f.time(), Record: v, Watching: time.Hour}
	for _, k := range f.keepers {
		c.Nodes = append(c.Nodes, ownership.Machine{Name: k.name, Lost: k.slept, LostFor: time.Hour, Fits: true})
		if k.answers() {
			if p, known := k.peer(); known {
				c.Peers = append(c.Peers, p)
			}
		}
		if k.wanted {
			c.Wanted = append(c.Wanted, k.name)
		}
		if k.name != v.Primary.Node {
			continue
		}
		c.Witnesses = append(c.Witnesses, ownership.Witness{Name: "x", Alive: !k.slept && !(f.faulty && f.s.chance(50))})
		if v.Primary.Boot != k.bootID() {
			c.Proofs = append(c.Proofs, ownership.Proof{Kind: ownership.PowerOff, Node: k.name, Boot: v.Primary.Boot})
		}
		if f.now-k.renewed >= ownership.SelfFenceAfter+ownership.SelfFenceMargin {
			c.SuspectFor = time.Hour
			c.Proofs = append(c.Proofs, ownership.Proof{Kind: ownership.SelfFenced, Node: k.name, Boot: v.Primary.Boot})
		}
	}
	if a := ownership.OverseeRules.Decide(&c); a.Verb == ownership.Record {
		if f.plan, err = record.Into(object, a.Next); err != nil {
			f.fail("the controller's record cannot be written: %v", err)
		}
	}
}

// nap is a story beside the dice: a node falls asleep right before an effect, its pod moves, and it wakes when
// another node has had the time to take over.
type nap struct {
	at     int
	effect string
	nth    int
	lasts  int
	begun  bool
}

var napped = []string{"Read", "Replace", "Store", "Mark", "Snapshot", "Receive", "Writable", "OpenEpoch", "CloseEpoch", "RollBack", "Preserve", "Ask", "Unmount"}

func newNap(s *schedule, nodes int) nap {
	if s.chance(3) {
		return nap{}
	}
	return nap{at: s.dice.IntN(nodes), effect: napped[s.dice.IntN(len(napped))], nth: 1 + s.dice.IntN(6), lasts: 200 + s.dice.IntN(600)}
}

func (p *nap) reaches(f *fleet, k *keeper, effect string) {
	if !f.faulty || p.begun || p.effect != effect || f.keepers[p.at] != k || !k.wanted && !f.s.chance(4) {
		return
	}
	if p.nth--; p.nth > 0 {
		return
	}
	p.begun, k.slept = true, true
	for i, other := range f.keepers {
		other.wanted = i == (p.at+1)%len(f.keepers)
	}
}

func (p *nap) passes(f *fleet) {
	if !p.begun || p.lasts < 0 {
		return
	}
	if p.lasts--; p.lasts < 0 {
		f.keepers[p.at].slept = false
	}
}

func (p *nap) sleeps(k *keeper) bool { return p.begun && p.lasts >= 0 && k.f.keepers[p.at] == k }
