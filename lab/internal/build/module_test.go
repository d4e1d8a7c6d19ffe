package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/artefact"
)

// hello is a module with a multi-call program, in a lab directory of its own.
func hello(t *testing.T, source string) Module {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "build", "hello")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module hello\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("BERTH_LAB_SOURCE", root)
	return Module{Name: "hello", Packages: []string{"."}, Links: []string{"greet"}}
}

const source = "package main\n\nfunc main() {}\n"

func address(t *testing.T, m Module) string {
	t.Helper()
	r, err := m.Recipe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Address()
}

func TestAModuleIsBuiltWithItsLinks(t *testing.T) {
	m := hello(t, source)
	dir, err := m.Get(t.Context(), &artefact.Store{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hello", "greet"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is not a program: %v", name, err)
		}
	}
	if got := m.Programs(); !slices.Equal(got, []string{"hello", "greet"}) {
		t.Errorf("Programs = %v", got)
	}
}

func TestAProgramIsNamedAsGoNamesIt(t *testing.T) {
	for pkg, want := range map[string]string{"example.com/tools/v3": "tools", "example.com/tools/cmd/v": "v", "example.com/v2/cmd/run": "run"} {
		if got := (Module{Packages: []string{pkg}}).Programs(); !slices.Equal(got, []string{want}) {
			t.Errorf("%s has the programs %v, want %s", pkg, got, want)
		}
	}
}

func TestTheAddressFollowsSourceAndFlags(t *testing.T) {
	m := hello(t, source)
	plain := address(t, m)
	flags := m
	flags.LDFlags = []string{"-X main.version=1"}
	tags := m
	tags.Tags = []string{"seccomp"}
	seen := map[string]string{plain: "the module"}
	for what, other := range map[string]string{
		"other source": address(t, hello(t, source+"\n// changed\n")), "linker flags": address(t, flags), "tags": address(t, tags),
	} {
		if same, ok := seen[other]; ok {
			t.Errorf("%s and %s have the same address", what, same)
		}
		seen[other] = what
	}
	if again := address(t, hello(t, source)); again != plain {
		t.Errorf("the same module elsewhere has address %s, want %s", again, plain)
	}
}

func TestTheAddressFollowsTheFileThatPinsTheVersions(t *testing.T) {
	m, older := hello(t, source), hello(t, source)
	older.ModFile = "go-1.mod"
	plain, dir := address(t, m), os.Getenv("BERTH_LAB_SOURCE")
	for _, name := range []string{"go-1.mod", "go-1.sum"} {
		if err := os.WriteFile(filepath.Join(dir, "build", m.Name, name), []byte("module hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := address(t, m); got != plain {
		t.Errorf("the address became %s by a file that pins other versions, and was %s", got, plain)
	}
	if got := address(t, older); got == plain {
		t.Error("both have the same address")
	}
}

func TestEachOlderKubernetesIsPinned(t *testing.T) {
	for minor, version := range older {
		m, err := KubernetesOf(minor)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := sourceDir(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		if mod, err := os.ReadFile(filepath.Join(dir, m.ModFile)); err != nil || !strings.Contains(string(mod), "k8s.io/kubernetes "+version) {
			t.Errorf("%s does not pin %s: %v", m.ModFile, version, err)
		}
	}
	if _, err := KubernetesOf("1.12"); err == nil || !strings.Contains(err.Error(), "1.36") {
		t.Errorf("error is %v, want the versions there are", err)
	}
}

func TestACompilerErrorIsInTheLog(t *testing.T) {
	m := hello(t, "package main\n\nfunc main() { undefinedName() }\n")
	m.Debian = []string{"libfoo-dev"}
	store := &artefact.Store{Dir: t.TempDir()}
	_, err := m.Get(t.Context(), store)
	if err == nil || !strings.Contains(err.Error(), "libfoo-dev") {
		t.Errorf("error is %v, want one that names the Debian packages", err)
	}
	r, _ := m.Recipe(t.Context())
	log, _ := os.ReadFile(store.LogPath(r))
	if !strings.Contains(string(log), "undefinedName") {
		t.Errorf("log is %q, want the compiler's words", log)
	}
}

func TestAnUnknownProgramIsRefusedWithTheListOfPrograms(t *testing.T) {
	_, err := Program(t.Context(), &artefact.Store{Dir: t.TempDir()}, "helm")
	if err == nil || !strings.Contains(err.Error(), "csi-provisioner") {
		t.Errorf("error is %v, want the programs there are", err)
	}
}

func TestAModuleThatIsNotThereSaysWhereToLook(t *testing.T) {
	t.Setenv("BERTH_LAB_SOURCE", t.TempDir())
	_, err := Kubernetes.Recipe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "BERTH_LAB_SOURCE") {
		t.Errorf("error is %v, want it to name BERTH_LAB_SOURCE", err)
	}
}

func TestEveryModuleOfTheLabIsPinned(t *testing.T) {
	for _, m := range Modules {
		dir, err := sourceDir(m.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Error(err)
		}
		for _, p := range m.Packages {
			if p != "." && !strings.Contains(string(mod), p) {
				t.Errorf("go.mod of %s has no tool line for %s", m.Name, p)
			}
		}
	}
}
