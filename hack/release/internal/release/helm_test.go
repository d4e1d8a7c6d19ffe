//go:build helm

package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// helm returns the path of the program.
func helm(t *testing.T) string {
	t.Helper()
	path := os.Getenv("BERTH_TEST_HELM")
	if path == "" {
		t.Fatal("BERTH_TEST_HELM does not name helm: run make test-release")
	}
	return path
}

// A chart that was released for a registry is rendered by Helm from there, with the images of that
// registry and no further values.
func TestHelmRendersTheReleasedChartFromARegistry(t *testing.T) {
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	rendered, err := run(helm(t), "template", "berth", released(t), "--version", "1.2.3", "--plain-http", "--set", "scheduler.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for line := range strings.Lines(rendered) {
		if _, image, ok := strings.Cut(line, "image: "); ok {
			images = append(images, strings.Trim(image, "\" \n"))
		}
	}
	if len(images) < 5 {
		t.Errorf("the chart has the images %q", images)
	}
	for _, image := range images {
		own := strings.HasPrefix(image, "registry.example.org/team/berth/") && strings.Contains(image, ":1.2.3@sha256:")
		if !own && !strings.HasPrefix(image, "registry.k8s.io/sig-storage/csi-") {
			t.Errorf("%s is neither of the release nor of Kubernetes", image)
		}
	}
}

func TestHelmPullsTheVeryArchiveOfTheRelease(t *testing.T) {
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	if _, err := run(helm(t), "pull", released(t), "--version", "1.2.3", "--plain-http", "--destination", dir); err != nil {
		t.Fatal(err)
	}
	want, err := checksum(os.DirFS(common(t)), "berth-1.2.3.tgz")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := checksum(os.DirFS(dir), "berth-1.2.3.tgz"); err != nil || got != want {
		t.Errorf("Helm pulled an archive with checksum %s, %v, want %s", got, err, want)
	}
}

// released pushes a release and returns the chart's name for Helm.
func released(t *testing.T) string {
	t.Helper()
	at, _ := pushed(t, common(t))
	return "oci://" + at + "/charts/berth"
}

func TestAReleaseWithoutARegistrySaysSo(t *testing.T) {
	c := config(t)
	c.Registry = ""
	dir := folderOf(t, c)
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	chart := filepath.Join(dir, "berth-1.2.3.tgz")
	if _, err := run(helm(t), "template", "berth", chart); err == nil || !strings.Contains(err.Error(), "imageRegistry") {
		t.Errorf("error is %v, want one that names the value to set", err)
	}
	rendered, err := run(helm(t), "template", "berth", chart, "--set", "imageRegistry=mirror.example.org")
	if err != nil || !strings.Contains(rendered, "mirror.example.org/berth/agent:1.2.3@sha256:") {
		t.Errorf("a mirror is not used, %v", err)
	}
}
