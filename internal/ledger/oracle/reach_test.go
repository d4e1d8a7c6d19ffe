package oracle

import (
	"regexp"
	"testing"
)

func TestTheRandomSequencesReachEveryKindOfEvent(t *testing.T) {
	// Counted by the words of the story that a failing sequence would tell.
	reached := map[string]int{}
	words := regexp.MustCompile(`refuses|carves|takes the static|binding of|static volume|reports|StorageNode|PersistentVolume %s goes|pod %s ends|starts|torn away|replica of .* goes|Volume %s goes|is to grow|gets a replica|class %s changes|class %s goes|claim %s comes|ends|pod %s goes|claim %s goes|PersistentVolume %s goes|asks for|gets the node|loses its node|is bound to|static volume|takes the static|is reserved|other replicas|also holds|with standbys|binding of|moves to|seen again|relisted|restarts|of another driver`)
	for seed := uint64(1); seed <= 1_000; seed++ {
		w := newWorld(2)
		w.trace = func(format string, _ ...any) { reached[words.FindString(format)]++ }
		if err := run(w, generate(seed)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, s := range w.schedulers {
			for what, n := range s.model.adopted {
				reached["choice: "+what] += n
			}
		}
	}
	delete(reached, "")
	for _, what := range []string{
		"refuses", "carves", "reports", "StorageNode", "starts", "torn away", "replica of %s on %s goes", "Volume %s goes", "is to grow",
		"gets a replica", "class %s changes", "class %s goes", "claim %s comes", "pod %s ends", "pod %s goes", "claim %s goes",
		"PersistentVolume %s goes", "asks for", "gets the node", "loses its node", "is bound to", "static volume", "takes the static",
		"is reserved", "other replicas", "also holds", "with standbys", "binding of", "moves to", "seen again", "relisted", "restarts", "of another driver",
		"choice: claims", "choice: inline volumes", "choice: inline volumes given up", "choice: growths", "choice: remains", "choice: replicas that are gone",
	} {
		if reached[what] == 0 {
			t.Errorf("%q never happened in 1000 sequences", what)
		}
	}
	t.Logf("%v", reached)
}
