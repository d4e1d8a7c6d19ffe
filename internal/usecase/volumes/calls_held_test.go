package volumes_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
)

// contested is a ledger that another process writes to while a call asks it.
type contested struct {
	*schedule.Book
	stage *stage
}

func (c contested) Node(name string) *ledger.Node {
	node := c.Book.Node(name)
	if do := c.stage.rival; do != nil {
		c.stage.rival = nil
		do()
	}
	return node
}

// take sets room aside for another claim.
func (s *stage) take(node, pool string, bytes int64) {
	s.t.Helper()
	r, _ := s.book.Request(ledger.RequestOptions{Pod: "theirs"}, ledger.Demand{Owner: ledger.Claim("theirs"), Class: "fast", Bytes: bytes, Pool: pool})
	if _, verdict := s.book.Reserve(node, r); !verdict.Fits() {
		s.t.Error(verdict)
	}
}

// The extender holds room on a few nodes only, and the scheduler may choose another one.
func TestAClaimThatIsHeldElsewhereKeepsItsNodeUntilTheHoldEnds(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		own := ledger.Demand{Owner: ledger.Claim(id[len("pvc-"):]), Class: "fast", Bytes: gi}
		r, _ := s.book.Request(ledger.RequestOptions{Pod: "web"}, own)
		if _, verdict := s.book.Reserve("m", r); !verdict.Fits() {
			t.Fatal(verdict)
		}
		_, err := s.Create(within(t), request("n"))
		expect(t, err, provision.ErrUnavailable)
		s.book.Unreserve("web", "m")
		_, err = s.Create(within(t), request("n"))
		expect(t, err, nil)
		s.on("n")
	})
}

func TestRoomThatAnotherTakesMeanwhileIsNotPromised(t *testing.T) {
	for name, change := range map[string]func(r *volumes.Request, s *stage){
		"a claim asks for the room": func(*volumes.Request, *stage) {},
		"a caller without a claim asks for the room": func(r *volumes.Request, s *stage) {
			r.Name, r.Claim, s.name = "by-hand", nil, v1alpha1.VolumeName("by-hand")
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				r := request()
				r.Topology.Preferred = []string{"m"}
				change(&r, s)
				s.rival = func() { s.take("m", "vg", 10*gi) }
				_, err := s.Create(within(t), r)
				expect(t, err, nil)
				s.on("n")
			})
		})
	}
}

func TestACallThatIsCutOffWhileItLooksForRoomWritesNothing(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancel(t.Context())
		r := request()
		r.Topology.Preferred = []string{"m"}
		s.rival = func() { s.take("m", "vg", 10*gi); cancel() }
		_, err := s.Create(ctx, r)
		expect(t, err, context.Canceled)
		s.wroteOnly()
	})
}

func TestVolumesWithoutClaimsDoNotHoldRoomForEachOther(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		named := func(name, node string) volumes.Request {
			r := request(node)
			r.Name, r.Claim, s.name = name, nil, v1alpha1.VolumeName(name)
			return r
		}
		s.agents["n"] = nil
		later(func() {
			_, err := s.Create(within(t), named("second", "m"))
			expect(t, err, nil)
			s.name, s.agents["n"] = v1alpha1.VolumeName("first"), carves
			s.answer()
		})
		_, err := s.Create(within(t), named("first", "n"))
		expect(t, err, nil)
	})
}

// promised is a claim of 1Gi that is to have its volume on node n, and its class. The ledger
// holds room for it there, in the largest pool.
func promised() (*corev1.PersistentVolumeClaim, *storagev1.StorageClass) {
	c := choose(func(*choice) {})
	c.claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(gi, resource.BinarySI)}
	c.class.Provisioner, c.class.Parameters = v1alpha1.LocalDriverName, map[string]string{"poolClass": "fast"}
	return c.claim, c.class
}

func TestAVolumeGoesIntoThePoolThatHoldsItsRoom(t *testing.T) {
	claim, class := promised()
	two := storageNode("n")
	wide := two.Status.Pools[0]
	wide.Name, wide.Total = "wide", *bytes(20 * gi)
	two.Status.Pools = append(two.Status.Pools, wide)
	beside := source()
	beside.Spec.Replicas[0].Node, beside.Status.Replicas[0].Node = "n", "n"
	for name, test := range map[string]struct {
		request volumes.Request
		change  func(r *volumes.Request)
		want    string
	}{
		"the volume goes into the pool of the ledger":            {request("n"), func(*volumes.Request) {}, "wide"},
		"the volume goes into the named pool":                    {request("n"), func(r *volumes.Request) { r.Pool = "vg" }, "vg"},
		"the volume is larger by now and goes into another pool": {request("n"), func(r *volumes.Request) { r.Size.Required = 6 * gi }, "vg"},
		"the volume goes into the pool of the source":            {copyOf(v1alpha1.VolumeSource{Volume: sourceID}, "n"), func(*volumes.Request) {}, "vg"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.take("n", "wide", 15*gi) // there is more room in the other pool by now
				r := test.request
				test.change(&r)
				_, err := s.Create(within(t), r)
				expect(t, err, nil)
				if v := s.volume(); v == nil || v.Spec.Replicas[0].Pool != test.want {
					t.Errorf("%+v, want it in %s", v, test.want)
				}
			}, two, claim, class, beside)
		})
	}
}
