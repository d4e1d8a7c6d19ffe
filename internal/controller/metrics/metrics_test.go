package metrics

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/certificates"
)

// objects stands in for the cache.
type objects struct {
	client.Reader
	volumes []v1alpha1.Volume
	nodes   []v1alpha1.StorageNode
	err     error
}

func (o *objects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *v1alpha1.VolumeList:
		l.Items = o.volumes
	case *v1alpha1.StorageNodeList:
		l.Items = o.nodes
	}
	return o.err
}

func volumeOf(name, claim string, change ...func(*v1alpha1.Volume)) v1alpha1.Volume {
	v := v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.Capacity, v.Spec.PoolClass = resource.MustParse("1Gi"), "fast"
	if claim != "" {
		v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: claim}
	}
	for _, c := range change {
		c(&v)
	}
	return v
}

func on(node string, state v1alpha1.ReplicaState) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "lvm:vg0"}}
		v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: node, State: state, Allocated: new(resource.MustParse("1028Mi"))}}
	}
}

func nodeOf(name string, ready metav1.ConditionStatus) v1alpha1.StorageNode {
	n := v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
	return n
}

func elected() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// shop is a cluster with a volume and a node in each state.
func shop() *Cluster {
	return &Cluster{
		Objects: &objects{
			volumes: []v1alpha1.Volume{
				volumeOf("pvc-1", "db", on("n1", v1alpha1.ReplicaReady)),
				volumeOf("pvc-2", "cache", on("n2", v1alpha1.ReplicaFailed)),
				volumeOf("vol-3", ""),
			},
			nodes: []v1alpha1.StorageNode{nodeOf("n1", metav1.ConditionTrue), nodeOf("n2", metav1.ConditionFalse), nodeOf("n3", metav1.ConditionTrue)},
		},
		Away: func(node string) string {
			if node == "n3" {
				return "its Lease has run out"
			}
			return ""
		},
		Nodes:   true,
		Elected: elected(),
	}
}

// sharedDisks are what the controllers of shared disks see: one volume waits, one has a standby that would take over, and
// one has none: the disk of one standby is not attached, and the node of the other does not answer.
func sharedDisks() *Cluster {
	shared := func(waiting metav1.ConditionStatus, replicas ...v1alpha1.OwnedReplica) func(*v1alpha1.Volume) {
		return func(v *v1alpha1.Volume) {
			v.Spec.Driver, v.Spec.PoolClass = v1alpha1.DiskDriverName, "san"
			v.Spec.Replication = v1alpha1.Replication{Kind: v1alpha1.ReplicationAttachments, Factor: 3}
			v.Status.Ownership = &v1alpha1.Ownership{Replicas: replicas}
			if len(replicas) > 0 {
				v.Status.Ownership.Primary = v1alpha1.Primary{Node: replicas[0].Node, Phase: v1alpha1.PrimaryActive}
			}
			v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: waiting, Message: "it waits"}}
		}
	}
	owned := func(node string, state v1alpha1.OwnedState) v1alpha1.OwnedReplica {
		return v1alpha1.OwnedReplica{Node: node, State: state}
	}
	c := shop()
	c.Nodes = false
	c.Silences = func() map[string]time.Duration {
		return map[string]time.Duration{"n1": 3 * time.Second, "n2": 90 * time.Second, "n3": time.Hour, "gone": time.Hour}
	}
	c.Objects = &objects{
		volumes: []v1alpha1.Volume{
			volumeOf("pvc-4", "disk", shared(metav1.ConditionTrue)),
			volumeOf("pvc-5", "other", shared(metav1.ConditionFalse, owned("n1", v1alpha1.OwnedReady), owned("n2", v1alpha1.OwnedReady), owned("n4", v1alpha1.OwnedSyncing))),
			volumeOf("pvc-6", "alone", shared(metav1.ConditionFalse, owned("n1", v1alpha1.OwnedReady), owned("n2", v1alpha1.OwnedFailed), owned("n3", v1alpha1.OwnedReady))),
		},
		nodes: []v1alpha1.StorageNode{nodeOf("n1", metav1.ConditionTrue), nodeOf("n2", metav1.ConditionTrue), nodeOf("n3", metav1.ConditionTrue)},
	}
	return c
}

var update = flag.Bool("update", false, "write the scrape anew that the tests of alerts and dashboard read")

// The files are what Prometheus reads, so that the tests of the alerts cannot use names that do not exist.
func TestTheLeaderShowsVolumesByTheirClaims(t *testing.T) {
	scrape(t, "controller.prom", shop(), &certificates.Keeper{})
}

func TestTheLeaderOfSharedDisksShowsTheirStandbysAndTheSilenceOfGuardsOnNodesThatAnswer(t *testing.T) {
	scrape(t, "disk-controller.prom", sharedDisks())
}

func scrape(t *testing.T, file string, collectors ...prometheus.Collector) {
	t.Helper()
	path := "../../../test/alerts/testdata/" + file
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	if *update {
		if err := prometheus.WriteToTextfile(path, registry); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if err := testutil.GatherAndCompare(registry, want); err != nil {
		t.Errorf("if the change is meant, run go test with -update: %v", err)
	}
}

func TestAControllerThatDoesNotLeadShowsNothingElse(t *testing.T) {
	c := shop()
	c.Elected = nil
	want := "# HELP berth_controller_leading 1 in the controller that leads, and 0 in the others.\n# TYPE berth_controller_leading gauge\nberth_controller_leading 0\n"
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestACacheThatCannotBeReadFailsTheScrape(t *testing.T) {
	c := shop()
	c.Objects = &objects{err: errors.New("no cache")}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("error is %v, want the cache's", err)
	}
}
