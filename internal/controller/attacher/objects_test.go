package attacher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orders"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/attacher"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// atAPI moves the orders of a site to an API server. Agents and controllers have their own accounts there, and each
// node has its StorageNode.
func (s *site) atAPI() *apitest.Environment {
	s.t.Helper()
	env := apitest.Start(s.t)
	c := env.Controller(s.t)
	s.desk = nil
	s.book = truthful{attacher.Objects{Cached: c, Live: c, Status: c, Scheme: simcloud.Scheme, Clock: s.clock}, s}
	count := 0
	s.side = func(node string) ordered.Book {
		a := env.Agent(s.t, node)
		return orders.Book{Node: node, Live: a, Status: a, Clock: s.clock, FreshID: func() string { count++; return fmt.Sprintf("%s-%d", node, count) }}
	}
	for _, n := range s.names {
		made(s.t, env.Client, &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	s.restart()
	return env
}

// made makes an object for as long as the test runs.
func made(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), o) })
}

// truthful compares each answer with the truth.
type truthful struct {
	attacher.Objects
	s *site
}

func (b truthful) Answer(ctx context.Context, node string, o attacher.Order, state ownership.OrderState, problem string, done bool) error {
	is, err := b.Still(ctx, node, o)
	if attached := slices.Contains(b.s.cloud.At(o.Disk.Handle), node); err == nil && is && (done && attached || state == ownership.Carried && !attached) {
		b.s.t.Errorf("node %s is told %v, done %v, of disk %s, and it is attached: %v", node, state, done, o.Disk.Handle, attached)
	}
	return b.Objects.Answer(ctx, node, o, state, problem, done)
}

// volumeOf makes the Volume of a disk, whose record counts nodes.
func volumeOf(t *testing.T, env *apitest.Environment, d shared.Disk, nodes ...string) *v1alpha1.Volume {
	t.Helper()
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: d.Volume},
		Spec: v1alpha1.VolumeSpec{
			Driver: v1alpha1.DiskDriverName, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block,
			PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{
				Factor: 3, Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
				Attachments: &v1alpha1.Attachments{MaxShares: 3, Persistent: true, Disk: &v1alpha1.SharedDisk{Handle: d.Handle, Identity: string(d.Identity)}},
			},
		},
	}
	made(t, env.Client, v)
	first := v1alpha1.Epoch{Number: 1, ID: "first"}
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: first, Primary: v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased}, Clean: true, Lineage: []v1alpha1.Branch{{Epoch: first}},
	}
	for _, n := range nodes {
		v.Status.Ownership.Replicas = append(v.Status.Ownership.Replicas, v1alpha1.OwnedReplica{Node: n, State: v1alpha1.OwnedReserved})
	}
	if err := env.Controller(t).Status().Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheDisksOfACloudConformWithTheirOrdersAtAnAPIServer(t *testing.T) {
	conformance.Run(t, func(t *testing.T) *conformance.World {
		s := newSite(t, simcloud.Config{Appear: 3 * time.Second}, "a", "b", "c")
		env := s.atAPI()
		d := s.disk("shared", 2)
		volumeOf(t, env, d, s.names...)
		return s.world(d, func() { s.settle(); s.clock.Step(3 * time.Second) })
	})
}

// TestControllersThatDieLeaveNoOrderOpen: each dies one effect later than the one before, until one lives to the end.
func TestControllersThatDieLeaveNoOrderOpen(t *testing.T) {
	for name, after := range map[string]bool{"before each effect": false, "after each effect": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, simcloud.Config{Lag: 5 * time.Second}, "a", "b")
			env := s.atAPI()
			d := s.disk("one", 2)
			volumeOf(t, env, d, s.names...)
			for range 2 {
				for _, n := range s.names {
					s.order(n, d, ownership.ToAttach)
				}
				s.settleDying(after)
				s.at(d, s.names...)
				s.order("b", d, ownership.ToDetach)
				s.settleDying(after)
				s.at(d, "a")
				if o := orderOf(t, env, "b", d.Handle); o != nil {
					t.Errorf("an order is left: %+v", o)
				}
			}
		})
	}
}

// orderOf reads a node's order for a disk.
func orderOf(t *testing.T, env *apitest.Environment, node, handle string) *v1alpha1.DiskOrder {
	t.Helper()
	n := &v1alpha1.StorageNode{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: node}, n); err != nil {
		t.Fatal(err)
	}
	return n.DiskOrder(handle)
}

func TestADiskIsAttachedOnlyToANodeThatItsVolumeCounts(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "counted", "stranger")
	env := s.atAPI()
	d := s.disk("one", 2)
	other := s.disk("other", 2)
	v := volumeOf(t, env, d, "counted")
	s.order("stranger", d, ownership.ToAttach)
	stolen := other
	stolen.Volume = v.Name // it is counted, and names the disk of another volume
	s.order("counted", stolen, ownership.ToAttach)
	s.order("counted", d, ownership.ToAttach)
	s.settle()
	for handle, want := range map[string][]string{d.Handle: {"counted"}, other.Handle: nil} {
		if at := s.cloud.At(handle); !slices.Equal(at, want) {
			t.Errorf("disk %s is attached to %q, want %q", handle, at, want)
		}
	}
	for node, handle := range map[string]string{"stranger": d.Handle, "counted": other.Handle} {
		if o := orderOf(t, env, node, handle); o == nil || o.State != v1alpha1.DiskOrderRefused || !strings.Contains(o.Problem, "has no attachment of node") {
			t.Errorf("the order of %s is %+v", node, o)
		}
	}
	if v := s.looks("stranger", d); v.Link != ownership.AttachFailed || v.Problem == "" {
		t.Errorf("the stranger sees %+v", v)
	}
}

func TestANodeThatWipesALUNGetsItsDisk(t *testing.T) {
	wipes := func(node, handle string) v1alpha1.LUN {
		l := v1alpha1.LUN{Spec: v1alpha1.LUNSpec{Disk: v1alpha1.SharedDisk{Handle: handle, Identity: "wwn:1"}}}
		l.Status.Wipe = &v1alpha1.LUNWipe{Node: node}
		return l
	}
	none := v1alpha1.LUN{Spec: v1alpha1.LUNSpec{Disk: v1alpha1.SharedDisk{Handle: "simcloud:///one", Identity: "wwn:1"}}}
	for name, tc := range map[string]struct {
		lun  v1alpha1.LUN
		want bool
	}{
		"the node":             {wipes("a", "simcloud:///one"), true},
		"another node":         {wipes("b", "simcloud:///one"), false},
		"another disk":         {wipes("a", "simcloud:///two"), false},
		"a LUN without a wipe": {none, false},
	} {
		d, is := attacher.Entitled("a", "simcloud:///one", nil, []v1alpha1.LUN{tc.lun})
		if is != tc.want || is && (d.Handle != "simcloud:///one" || d.Identity != "wwn:1") {
			t.Errorf("%s: %v, %+v", name, is, d)
		}
	}
}

// TestTwoVolumesOfOneDiskHaveOneOrder: whichever comes first. The other learns of it, and changes nothing.
func TestTwoVolumesOfOneDiskHaveOneOrder(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	env := s.atAPI()
	d := s.disk("one", 2)
	volumeOf(t, env, d, "a")
	s.order("a", d, ownership.ToAttach)
	s.settle()
	twin := d
	twin.Volume = "vol-twin"
	n := s.node("a")
	if err := n.Attach(t.Context(), twin); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), d.Volume) {
		t.Errorf("the twin is ordered: %v", err)
	}
	if err := n.Detach(t.Context(), twin); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("the twin is detached: %v", err)
	}
	if _, err := n.Look(t.Context(), twin); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("the twin is looked at: %v", err)
	}
	s.at(d, "a")
}

func TestAnOrderIsNotPlacedWithoutAStorageNode(t *testing.T) {
	env := apitest.Start(t)
	a := env.Agent(t, "unknown")
	b := orders.Book{Node: "unknown", Live: a, Status: a, FreshID: func() string { return "1" }, Clock: newSite(t, simcloud.Config{}).clock}
	d := shared.Disk{Volume: "v", Handle: "simcloud:///one"}
	if err := b.Place(t.Context(), d, ownership.ToAttach); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("it is placed: %v", err)
	}
	if _, _, err := b.Read(t.Context(), d); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("it is read: %v", err)
	}
}

// TestAnOrderThatIsAnsweredIsNotCarriedOutAgain: the cache shows it for a while, and no operation begins for it.
func TestAnOrderThatIsAnsweredIsNotCarriedOutAgain(t *testing.T) {
	for name, wish := range map[string]ownership.Wish{"an attach": ownership.ToAttach, "a detach": ownership.ToDetach} {
		s := newSite(t, simcloud.Config{}, "a")
		d := s.disk("one", 1)
		s.order("a", d, ownership.ToAttach)
		if wish == ownership.ToDetach {
			s.settle()
			s.order("a", d, ownership.ToDetach)
		}
		old := &past{desk: s.desk}
		old.orders, _ = s.desk.Orders(t.Context(), "a")
		s.controller = attacher.New(s.cloud, old, s.clock)
		before := 0
		for i := range 3 {
			s.settle()
			s.clock.Step(time.Minute)
			if n := s.cloud.Tally().Calls["change"]; i == 0 {
				before = n
			} else if n != before {
				t.Errorf("%s: %d operations more were begun", name, n-before)
			}
		}
	}
}
