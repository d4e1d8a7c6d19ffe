package attach

import (
	"fmt"
	"testing"
)

// BenchmarkPlaces answers for one of three volumes of a pod about a thousand nodes with thirty pods each.
func BenchmarkPlaces(b *testing.B) {
	board, nodes := New(), names("n", 1000)
	for _, node := range nodes {
		board.good(node, 0)
		for i := range 30 {
			name := fmt.Sprintf("%s-%d", node, i)
			board.disk(name, []string{node})
			board.pod(name, node, []string{name})
		}
	}
	volumes := names("v", 3)
	for _, v := range volumes {
		board.disk(v, nodes[:1])
	}
	board.pod("p", nodes[0], volumes)
	for b.Loop() {
		board.Places("v0", nodes)
	}
}
