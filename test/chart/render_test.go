//go:build helm

package chart

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the files with the expected objects anew")

// classes are values of the chart with the classes.
const classes = "testdata/classes.values.yaml"

// cases are the files with values, by the name of the file with the expected objects.
var cases = map[string]string{
	"default":    "testdata/default.values.yaml",
	"everything": "testdata/everything.values.yaml",
	"mirror":     "testdata/mirror.values.yaml",
	"lab":        "../lab/values.yaml",
}

// copied are kinds of objects that are files of the chart.
var copied = []string{"CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// render returns the YAML texts of the chart's objects.
func render(t *testing.T, values string, further ...string) []string {
	t.Helper()
	out, err := helm(t, append([]string{"--values", values}, further...)...)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for text := range strings.SplitSeq(out, "---\n") {
		isCopied := slices.ContainsFunc(copied, func(kind string) bool { return strings.Contains(text, "\nkind: "+kind+"\n") })
		if strings.Contains(text, "\nkind: ") && !isCopied {
			texts = append(texts, text)
		}
	}
	return texts
}

func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("BERTH_TEST_HELM")
	if program == "" {
		t.Fatal("BERTH_TEST_HELM does not name helm: run make test-release")
	}
	// The versions of the cluster that the chart asks for must not follow Helm's own.
	chart := "../../charts/berth"
	if slices.Contains(args, classes) {
		chart += "-classes"
	}
	args = append([]string{"template", "berth", chart, "--namespace", "berth-system", "--kube-version", "1.37.0"}, args...)
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("helm: %w: %s", err, failed.Stderr)
	}
	return string(out), err
}

func TestTheChartRendersToTheObjectsInTheTree(t *testing.T) {
	all := maps.Clone(cases)
	all["classes"] = classes
	for name, values := range all {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(render(t, values), "---\n")
			path := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("if the change is meant, run make golden (-want +got):\n%s", diff)
			}
		})
	}
}

// Flags that follow others of the same name win: the chart is rendered for that Kubernetes.
func TestASchedulerIsNeverNewerThanItsCluster(t *testing.T) {
	for version, want := range map[string]string{"1.36.0": "1.36", "1.36.9-gke.100": "1.36", "1.37.0": "1.37", "1.38.2": "1.37"} {
		out, err := helm(t, "--set", "imageRegistry=localhost,scheduler.enabled=true", "--kube-version", version)
		if image := "localhost/berth/scheduler-" + want + ":"; err != nil || !strings.Contains(out, image) {
			t.Errorf("Kubernetes %s does not get %s: %v", version, image, err)
		}
	}
}

func TestAnOptionThatTheClusterIsTooOldForIsRefused(t *testing.T) {
	for option, says := range map[string]string{
		"scheduler.enabled=true": "berth-scheduler is for 1.36",
		"extender.enabled=true,extender.tlsSecret=a,extender.clientCASecret=b,extender.marker.enabled=true,extender.marker.schedulerName=c": "MutatingAdmissionPolicy",
	} {
		_, err := helm(t, "--set", "imageRegistry=localhost,"+option, "--kube-version", "1.35.4")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s on Kubernetes 1.35: error is %v, want one about %s", option, err, says)
		}
	}
	if _, err := helm(t, "--set", "imageRegistry=localhost", "--kube-version", "1.34.0"); err != nil {
		t.Errorf("the defaults do not render for the oldest Kubernetes: %v", err)
	}
}

func TestAnImageWithoutARegistryIsRefused(t *testing.T) {
	if _, err := helm(t); err == nil || !strings.Contains(err.Error(), "imageRegistry") {
		t.Errorf("error is %v, want one that names the value to set", err)
	}
}
