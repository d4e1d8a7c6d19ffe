package ledger_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/internal/ledger"
)

func TestTheLedgerImportsNothingThatActsOrKnowsTheTime(t *testing.T) {
	allowed := []string{"cmp", "errors", "fmt", "maps", "math/bits", "slices", "strings"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

func TestNodesMayBeAskedWithoutALockWhileTheLedgerChanges(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib)), report("n2", volumeGroup("vg0", 10*gib)))
	c.reserve("p", "n2", replicated("y", 2, gib))
	n, s, r := c.Node("n1"), c.Snapshot(), c.request("p", claimed("x", 6*gib))
	several := c.request("p", replicated("y", 2, gib))
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 200 {
				if !n.Fit(r).Fits() || n.Score(r) == 0 || !s.Without(ledger.Claim("d")).Node("n1").Fit(r).Fits() || !s.Plan(several).Fit(n).Fits() {
					t.Error("what was asked of changed")
					return
				}
			}
		})
	}
	for range 200 {
		c.reserve("q", "n1", claimed("d", 8*gib))
		c.reserve("p", "n1", replicated("y", 2, gib))
		c.class(ledger.Class{Name: "fast", Spare: gib})
		c.report(report("n1", volumeGroup("vg0", 10*gib)))
		c.Unreserve("q", "n1")
		c.Unreserve("p", "n1")
		c.class(ledger.Class{Name: "fast"})
	}
	asking.Wait()
}
