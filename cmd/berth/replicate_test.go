package main

import (
	"bytes"
	"os"
	"path/filepath"
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

func TestACheckOfReplicationSaysWhatItLacks(t *testing.T) {
	dir := t.TempDir()
	if _, err := berth(t, "replicate", "keys", "--dir", dir, "beta"); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"--node, --pool, and either": {"--node", "beta"},
		"make it by: berth":          {"--keys", dir, "--node", "alpha", "--pool", "btrfs:data", "--listen", "127.0.0.1:0"},
		"btrfs:NAME":                 {"--keys", dir, "--node", "beta", "--pool", "lvm/vg0", "--listen", "127.0.0.1:0"},
		"cannot fetch from itself":   {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--from", "beta", "--address", "127.0.0.1:1"},
		"[from address]":             {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--from", "alpha"},
		"no certificate of an agent": {"--peer-dir", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0"},
		"poold does not answer":      {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--poold", "unix://" + filepath.Join(dir, "no.sock")},
		"neither embedded nor unix":  {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--poold", "poold.sock"},
		"[keys peer-dir]":            {"--keys", dir, "--peer-dir", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0"},
		"--rate \"-1\": it is below": {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--rate", "-1"},
		"quantities must match":      {"--keys", dir, "--node", "beta", "--pool", "btrfs:data", "--listen", "127.0.0.1:0", "--size", "much"},
	} {
		if out, err := berth(t, append([]string{"replicate", "check"}, args...)...); err == nil || !strings.Contains(err.Error()+out, says) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
