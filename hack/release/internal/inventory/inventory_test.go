package inventory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cache makes a module cache with one module, whose files have the contents.
func cache(t *testing.T, files map[string]string) (Sources, Module) {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "example.com", "!upper@v1.0.0")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Sources{ModuleCache: root}, Module{Path: "example.com/Upper", Version: "v1.0.0"}
}

func apache(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAModulesLicencesAndNoticesAreFound(t *testing.T) {
	s, m := cache(t, map[string]string{"LICENSE": apache(t), "NOTICE": "Made by someone.", "license.go": "package upper", "main.go": ""})
	got, err := s.Licences([]Module{m})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Apache-2.0"}, got[0].Licences); diff != "" {
		t.Errorf("licences (-want +got):\n%s", diff)
	}
	var names []string
	for _, f := range Texts(got) {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"example.com/Upper@v1.0.0/LICENSE", "example.com/Upper@v1.0.0/NOTICE"}, names); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

func TestAModuleWithoutAKnownLicenceIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no file":             {"README.md": "free for all"},
		"a notice alone":      {"NOTICE": "Made by someone."},
		"terms of one's own":  {"LICENSE": "You may use this on Sundays."},
		"a licence and terms": {"LICENSE": "Not for you: " + strings.Repeat("you must pay for all use of this. ", 300) + apache(t)},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := cache(t, files)
			if _, err := s.Licences([]Module{m}); err == nil || !strings.Contains(err.Error(), m.String()) {
				t.Errorf("error is %v, want one that names the module", err)
			}
		})
	}
}

func TestARootFilesystemThatNamesNoPackageIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.tar")
	if err := os.WriteFile(path, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Packages(path); err == nil {
		t.Error("a root filesystem of unknown content was accepted")
	}
}

func TestAnIncompleteDescriptionOfAPackageIsRefused(t *testing.T) {
	for _, text := range []string{"", "Package: x\nVersion: 1\n", "Package: x\nArchitecture: amd64\nDescription: y\n Version: 1\n"} {
		if _, err := parsePackage([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
