package release

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestAReleaseMadeTwiceIsTheSame(t *testing.T) {
	c := config(t)
	first := content(t, common(t))
	inputs, err := filepath.Glob(filepath.Join(c.Programs, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range inputs {
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	second := content(t, folderOf(t, c))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second))); diff != "" {
		t.Fatalf("files (-first +second):\n%s", diff)
	}
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestAReleaseReplacesTheOneBefore(t *testing.T) {
	c := config(t)
	dir := folderOf(t, c)
	c.Version = "1.2.4"
	if err := Write(dir, c); err != nil {
		t.Fatal(err)
	}
	for name := range content(t, dir) {
		if strings.Contains(name, "1.2.3") {
			t.Errorf("%s is left of the release before", name)
		}
	}
}

func TestAFailedReleaseLeavesTheOneBefore(t *testing.T) {
	c := config(t)
	dir := folderOf(t, c)
	before := content(t, dir)
	if err := os.Remove(filepath.Join(c.Programs, plugin+"-windows-arm64.exe")); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, c); err == nil || !strings.Contains(err.Error(), "windows/arm64") {
		t.Errorf("error is %v, want it to name the platform that has no program", err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(content(t, dir)))); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the release there are %v, %v", left, err)
	}
}

func TestWhatIsNoVersionIsRefused(t *testing.T) {
	for _, version := range []string{"", "v1.2.3", "latest"} {
		c := config(t)
		c.Version = version
		if err := Write(filepath.Join(t.TempDir(), "release"), c); err == nil {
			t.Errorf("version %q was accepted", version)
		}
	}
}

func TestEveryFileHasItsChecksum(t *testing.T) {
	dir := common(t)
	var want []string
	for name := range content(t, dir) {
		if name != sums {
			want = append(want, name)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if taken, err := checksum(os.DirFS(dir), name); !ok || err != nil || taken != sum {
			t.Errorf("%s has the checksum %s, %v, and the file says %s", name, taken, err, sum)
		}
		got = append(got, name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestKrewIsToldOfEveryPlatform(t *testing.T) {
	dir := common(t)
	text, err := os.ReadFile(filepath.Join(dir, "berth.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, p := range m.Spec.Platforms {
		labels := p.Selector["matchLabels"]
		platforms = append(platforms, labels["os"]+"/"+labels["arch"])
		name, ok := strings.CutPrefix(p.URI, "https://downloads.example.org/")
		if sum, err := checksum(os.DirFS(dir), name); !ok || err != nil || sum != p.SHA256 {
			t.Errorf("%s has the checksum %s, %v; krew expects %s", p.URI, sum, err, p.SHA256)
		}
		if want := plugin + suffix(labels["os"]); p.Bin != want {
			t.Errorf("the program for %s is called %s, want %s", labels["os"], p.Bin, want)
		}
	}
	want := []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
	if diff := cmp.Diff(want, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestABillOfMaterialsListsModulesAndPackages(t *testing.T) {
	dir := common(t)
	for name, want := range map[string][]string{
		"agent-linux-arm64":       {"pkg:deb/debian/libx@1:2.0-1?arch=arm64", "pkg:golang/golang.org/x/mod@", "pkg:golang/std@"},
		"controller-linux-amd64":  {"pkg:golang/golang.org/x/mod@", "pkg:golang/std@"},
		plugin + "-windows-amd64": {"pkg:golang/golang.org/x/mod@", "pkg:golang/std@"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, "sbom", name+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			Components []struct {
				URL string `json:"purl"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &bill); err != nil {
			t.Fatal(err)
		}
		for _, url := range want {
			if !slices.ContainsFunc(bill.Components, func(c struct {
				URL string `json:"purl"`
			}) bool {
				return strings.HasPrefix(c.URL, url)
			}) {
				t.Errorf("%s is not in the bill of %s: %+v", url, name, bill.Components)
			}
		}
		if len(bill.Components) != len(want) {
			t.Errorf("%s has %d parts, want %d", name, len(bill.Components), len(want))
		}
	}
}
