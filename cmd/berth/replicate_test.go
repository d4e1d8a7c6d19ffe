package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// berth runs a command and returns what it printed.
func berth(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRootCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestKeysAreMadeForEachNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	for _, nodes := range [][]string{{"alpha", "beta"}, {"gamma"}} {
		if out, err := berth(t, append([]string{"replicate", "keys", "--dir", dir}, nodes...)...); err != nil || !strings.Contains(out, nodes[0]) {
			t.Fatalf("%q, %v", out, err)
		}
	}
	for _, name := range []string{"ca.crt", "ca.key", "alpha.crt", "alpha.key", "beta.crt", "gamma.key"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}

func TestKeysAreMadeForNamesOfNodesOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := berth(t, "replicate", "keys", "--dir", dir, "node-1.example.org"); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	for name, says := range map[string]string{
		"ca": "its files would replace those of the authority", "Alpha": "lower case", "../alpha": "lower case", "": "lower case", "*controllers": "lower case",
	} {
		if _, err := berth(t, "replicate", "keys", "--dir", dir, name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("for %q: %v", name, err)
		}
	}
	if after := files(t, dir); !maps.Equal(before, after) {
		t.Errorf("there was %v, and there is %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

// A node gets ca.crt and no ca.key. Another authority there would be one that no other node trusts.
func TestKeysAreMadeOnlyWhereTheAuthorityIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := berth(t, "replicate", "keys", "--dir", dir, "alpha"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	if _, err := berth(t, "replicate", "keys", "--dir", dir, "beta"); err == nil || !strings.Contains(err.Error(), "make the keys where the authority was made, and copy beta.crt and beta.key from there") {
		t.Error(err)
	}
	if after := files(t, dir); !maps.Equal(before, after) {
		t.Error("files have changed")
	}
}

// files returns what the files below a directory, and those beside it, have in them.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // the test has made it
		found[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestACheckOfReplicationSaysWhatItLacks(t *testing.T) {
	dir := t.TempDir()
	if _, err := berth(t, "replicate", "keys", "--dir", dir, "beta"); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"--node, --pool, and either":  {"--node", "beta"},
		"the machine that has ca.key": {"--keys", dir, "--node", "alpha", "--pool", "btrfs:data", "--listen", "127.0.0.1:0"},
		"btrfs:NAME":                  {"--keys", dir, "--node", "beta", "--pool", "lvm/vg0", "--listen", "127.0.0.1:0"},
		"cannot fetch from itself":    {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--from", "beta", "--address", "127.0.0.1:1"},
		"[from address]":              {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--from", "alpha"},
		"no certificate of an agent":  {"--peer-dir", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0"},
		"poold does not answer":       {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--poold", "unix://" + filepath.Join(dir, "no.sock")},
		"neither embedded nor unix":   {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--poold", "poold.sock"},
		"[keys peer-dir]":             {"--keys", dir, "--peer-dir", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0"},
		"--rate \"-1\": it is below":  {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--rate", "-1"},
		"quantities must match":       {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--size", "much"},
	} {
		if out, err := berth(t, append([]string{"replicate", "check"}, args...)...); err == nil || !strings.Contains(err.Error()+out, says) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
