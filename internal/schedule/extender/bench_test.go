package extender

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule/cases"
)

// BenchmarkFilter is one question about 500 nodes, as a scheduler asks in a
// cluster of 5,000, without HTTP and JSON.
func BenchmarkFilter(b *testing.B) {
	c := cases.All()["where it fits on both the one with more to spare is better"]
	node := c.StorageNodes[0]
	c.StorageNodes = nil
	var names []string
	for i := range 500 {
		node.Name = fmt.Sprintf("node-%04d", i)
		names = append(names, node.Name)
		c.StorageNodes = append(c.StorageNodes, node)
	}
	book := c.Book()
	e := &Extender{Driver: driver.Local(), Book: book, Objects: Objects{Source: worldOf(&c)}, Holds: NewHolds(book, clocktesting.NewFakeClock(time.Unix(0, 0)))}
	b.ReportAllocs()
	for b.Loop() {
		out, err := e.Filter(b.Context(), c.Pod, names)
		if err != nil || len(*out.NodeNames) != len(names) {
			b.Fatal(len(*out.NodeNames), err)
		}
	}
}
