package schedule

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/heartbeat"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

// fullBook has n nodes of 100Gi, with twenty volumes of 1Gi each.
func fullBook(n int) *Book {
	l := Lists{Driver: driver.Local(), PoolClasses: []v1alpha1.PoolClass{*poolClass(0)}}
	l.StorageClasses = append(l.StorageClasses, *local())
	for i := range n {
		node := fmt.Sprintf("node-%04d", i)
		l.StorageNodes = append(l.StorageNodes, *storageNode(node, 100*gi))
		for k := range 20 {
			v := volumeFor("1", node, gi)
			v.Name = fmt.Sprintf("pvc-%d-%d", i, k)
			v.Spec.ClaimRef = nil
			l.Volumes = append(l.Volumes, *v)
		}
	}
	return l.Book(&beats{})
}

// BenchmarkFilter measures the cost of the plugin's Filter on each node: the look-up
// under the lock that it shares with the informers, and the fit.
func BenchmarkFilter(b *testing.B) {
	book := fullBook(1000)
	r, _ := book.Request(ledger.RequestOptions{Pod: "p"}, demand("1", 3*gi))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !book.Node("node-0007").Fit(r).Fits() {
				b.Fatal("it does not fit")
			}
		}
	})
}

func BenchmarkReserve(b *testing.B) {
	book := fullBook(1000)
	r, _ := book.Request(ledger.RequestOptions{Pod: "p"}, demand("1", 3*gi))
	b.ReportAllocs()
	for b.Loop() {
		if _, verdict := book.Reserve("node-0007", r); !verdict.Fits() {
			b.Fatal(verdict)
		}
		book.Unreserve("p", "node-0007")
	}
}

func BenchmarkRead(b *testing.B) {
	o := shop(pvc("1", gi))
	for name, pod := range map[string]*corev1.Pod{"without volumes": podWith(), "with a claim": podWith(claimVolume("1"))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Reader{driver.Local(), o}).Read(b.Context(), pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVolumeEvent measures the cost of one event of a Volume for the feed.
func BenchmarkVolumeEvent(b *testing.B) {
	f := newFeeder(fullBook(1000), Informers{Driver: driver.Local(), Heartbeats: &beats{}})
	v := volumeFor("1", "node-0007", gi)
	b.ReportAllocs()
	for b.Loop() {
		f.observeVolume(v)
	}
}

// BenchmarkLookAtHeartbeats measures the work of every second in a large cluster,
// even when no pod is scheduled.
func BenchmarkLookAtHeartbeats(b *testing.B) {
	beats := heartbeat.New(clock.RealClock{})
	f := newFeeder(NewBook(), Informers{Driver: driver.Local(), Heartbeats: beats})
	for i := range 5000 {
		name := fmt.Sprintf("node-%04d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		beats.NodeHandler().OnAdd(node, true)
		beats.LeaseHandler().OnAdd(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.AgentLeasePrefix + name}}, true)
		f.observeNode(storageNode(name, 100*gi))
	}
	b.ReportAllocs()
	for b.Loop() {
		f.lookAtHeartbeats()
	}
}
