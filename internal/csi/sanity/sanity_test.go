package sanity

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"berth.dev/berth/internal/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// skippedList is the file that lists the specs that the suite skips, one per line.
const skippedList = "skipped.txt"

var rewrite = flag.Bool("rewrite", false, "write the list of skipped specs instead of comparing it")

func TestTheDriverPassesTheUpstreamSuite(t *testing.T) {
	d := start(t)
	report := filepath.Join(t.TempDir(), "report.json")
	if err := flag.Set("ginkgo.json-report", report); err != nil {
		t.Fatal(err)
	}
	config := sanity.NewTestConfig()
	config.Address, config.ControllerAddress = d.node, d.controller
	config.TargetPath, config.StagingPath = filepath.Join(d.kubeletDir, "target"), filepath.Join(d.kubeletDir, "staging")
	config.TestVolumeParameters = map[string]string{"poolClass": class}
	config.CheckPath = kind

	sanity.Test(t, config)

	passed, skipped := outcomes(t, report)
	if len(passed) == 0 {
		t.Error("no spec ran")
	}
	got := strings.Join(skipped, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(skippedList, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(skippedList)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs from what was skipped (-rewrite writes it): %s", skippedList, diff)
	}
	t.Logf("%d specs passed, %d were skipped", len(passed), len(skipped))
}

// kind returns the kind of a path. Without it the suite would run a shell.
func kind(path string) (sanity.PathKind, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sanity.PathIsNotFound, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return sanity.PathIsDir, nil
	case info.Mode().IsRegular():
		return sanity.PathIsFile, nil
	default:
		return sanity.PathIsOther, nil
	}
}

// outcomes reads the suite's own report.
func outcomes(t *testing.T, path string) (passed, skipped []string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts    []string
			LeafNodeText, LeafNodeType string
			State                      string
		}
	}
	if err := json.Unmarshal(raw, &suites); err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType != "It" {
				continue
			}
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " / ")
			switch spec.State {
			case "passed":
				passed = append(passed, name)
			case "skipped", "pending":
				skipped = append(skipped, name)
			}
		}
	}
	slices.Sort(passed)
	slices.Sort(skipped)
	return passed, skipped
}
