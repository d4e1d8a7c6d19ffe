package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/artefact"
)

// programs writes a stand-in for each program and returns where they are.
func programs(t *testing.T) Programs {
	t.Helper()
	dir := t.TempDir()
	p := Programs{
		Kubelet: filepath.Join(dir, "kubelet"), KubeProxy: filepath.Join(dir, "kube-proxy"), Runc: filepath.Join(dir, "runc"),
		Containerd: filepath.Join(dir, "containerd"), CNI: filepath.Join(dir, "cni"),
	}
	for place, source := range p.Files() {
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, []byte(place), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestToolsDiskHoldsThePrograms(t *testing.T) {
	image, err := Tools(t.Context(), &artefact.Store{Dir: t.TempDir()}, programs(t))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bin/kubelet", "bin/kube-proxy", "cni/bridge", "bin/ctr"} {
		if !strings.Contains(string(data), want) { // the stand-in's content
			t.Errorf("the image does not hold %s", want)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(image), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the artefact holds %v, %v", left, err)
	}
}

func TestToolsDiskIsMadeAnewForOtherContentOnly(t *testing.T) {
	store, p := &artefact.Store{Dir: t.TempDir()}, programs(t)
	get := func() string {
		image, err := Tools(t.Context(), store, p)
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	first := get()
	if again := get(); again != first {
		t.Errorf("the same programs gave %s and %s", first, again)
	}
	if err := os.WriteFile(p.Kubelet, []byte("another kubelet"), 0o755); err != nil {
		t.Fatal(err)
	}
	if other := get(); other == first {
		t.Error("another kubelet gave the same disk")
	}
}

func TestMissingProgramIsNamed(t *testing.T) {
	p := programs(t)
	if err := os.Remove(p.Runc); err != nil {
		t.Fatal(err)
	}
	if _, err := Tools(t.Context(), &artefact.Store{Dir: t.TempDir()}, p); err == nil || !strings.Contains(err.Error(), p.Runc) {
		t.Errorf("got %v", err)
	}
}
