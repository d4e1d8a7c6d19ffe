package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfig is that of a server that the test never calls.
func kubeconfig(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "kubeconfig")
	err := os.WriteFile(path, []byte(`{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// dirOf is a directory whose path is short enough for a socket.
func dirOf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestTheDoorsOfAProcessOpenTogetherOrNotAtAll(t *testing.T) {
	dir := dirOf(t)
	f := doorFlags{csiSocket: filepath.Join(dir, "csi.sock"), httpAddress: "127.0.0.1:0", kubeconfig: kubeconfig(t, dir)}
	d, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.cluster.UserAgent != "berth/"+version {
		t.Errorf("the API server is told %q", d.cluster.UserAgent)
	}
	taken := f
	taken.csiSocket, taken.httpAddress = filepath.Join(dir, "other.sock"), d.http.Addr().String()
	if _, err := taken.open(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "opening --http-address: ") {
		t.Errorf("an address that is taken: %v", err)
	}
	if c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", taken.csiSocket); err == nil {
		_ = c.Close()
		t.Error("the socket was left open")
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if err := d.close(); err != nil {
		t.Errorf("what a server has closed before: %v", err)
	}
}

func TestAProcessWithoutAWayToTheAPIServerAsksForAKubeconfig(t *testing.T) {
	f := doorFlags{csiSocket: filepath.Join(dirOf(t), "csi.sock"), httpAddress: "127.0.0.1:0", kubeconfig: "/nowhere/kubeconfig"}
	if _, err := f.open(t.Context()); err == nil || !strings.Contains(err.Error(), "give --kubeconfig") {
		t.Error(err)
	}
}
