//go:build deployed

package sanity

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// run runs the suite and compares the skipped specs with those listed in a file.
func run(t *testing.T, config sanity.TestConfig, skippedList string) {
	t.Helper()
	var skipped []string
	context := sanity.GinkgoTest(&config)
	ginkgo.ReportAfterSuite("skipped specs", func(r ginkgo.Report) {
		for _, spec := range r.SpecReports {
			if spec.State.Is(types.SpecStateSkipped|types.SpecStatePending) && spec.LeafNodeType.Is(types.NodeTypeIt) {
				skipped = append(skipped, strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " / "))
			}
		}
	})
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "CSI sanity")
	context.Finalize()

	slices.Sort(skipped)
	want, err := os.ReadFile(skippedList)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), skipped); diff != "" {
		t.Errorf("the skipped specs are not those of %s (- listed, + skipped):\n%s", skippedList, diff)
	}
}
