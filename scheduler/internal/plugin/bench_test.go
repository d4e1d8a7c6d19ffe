package plugin

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

// heard says that every agent is heard.
type heard struct{}

func (heard) Away(string) string  { return "" }
func (heard) Notify(func(string)) {}

// BenchmarkInline measures the cost of the plugin for a pod with an inline volume
// in a cluster of 1,000 nodes: kube-scheduler asks 420 of those and scores them.
func BenchmarkInline(b *testing.B) {
	lists := &schedule.Lists{Driver: driver.Local(), PoolClasses: make([]v1alpha1.PoolClass, 1)}
	lists.PoolClasses[0].Name = "fast"
	infos := make([]fwk.NodeInfo, 1000)
	for i := range infos {
		node := &corev1.Node{}
		node.Name = fmt.Sprintf("node-%04d", i)
		report := v1alpha1.StorageNode{ObjectMeta: node.ObjectMeta}
		report.Status.Pools = []v1alpha1.Pool{{
			Name: "vg0", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{"fast"},
			Total: *resource.NewQuantity(16*gi, resource.BinarySI), AllocationUnit: *resource.NewQuantity(4<<20, resource.BinarySI),
		}}
		lists.StorageNodes = append(lists.StorageNodes, report)
		info := framework.NewNodeInfo()
		info.SetNode(node)
		infos[i] = info
	}
	book := lists.Book(heard{})
	p := &Plugin{Driver: driver.Local(), Book: book, Reader: schedule.Reader{Driver: driver.Local(), Objects: lists}, Refusals: NewRefusals(func() {})}
	pod := podWithInline("p", gi)
	b.ReportAllocs()
	for b.Loop() {
		state := framework.NewCycleState()
		if _, status := p.PreFilter(b.Context(), state, pod, infos); !status.IsSuccess() {
			b.Fatal(status)
		}
		for _, info := range infos[:420] {
			if status := p.Filter(b.Context(), state, pod, info); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
		if status := p.PreScore(b.Context(), state, pod, infos[:420]); !status.IsSuccess() {
			b.Fatal(status)
		}
		for _, info := range infos[:420] {
			if _, status := p.Score(b.Context(), state, pod, info); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
		if status := p.Reserve(b.Context(), state, pod, "node-0007"); !status.IsSuccess() {
			b.Fatal(status)
		}
		p.Unreserve(b.Context(), state, pod, "node-0007")
	}
}
