package poold

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestRootAndTheOwnUserAreAdmitted(t *testing.T) {
	for name, tc := range map[string]struct {
		uid  uint32
		want bool
	}{
		"root":              {0, true},
		"the user of poold": {uint32(os.Geteuid()), true},
		"the user nobody":   {65534, os.Geteuid() == 65534},
		"an ordinary user":  {1000, os.Geteuid() == 1000},
	} {
		if got := admitted(tc.uid); got != tc.want {
			t.Errorf("%s: admitted is %v", name, got)
		}
	}
}

func TestThePeersUserComesFromTheKernel(t *testing.T) {
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if _, info, err := (peerCredentials{}).ServerHandshake(served); err != nil || info.(peerInfo).uid != uint32(os.Geteuid()) {
		t.Errorf("the handshake gave %+v, %v", info, err)
	}
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	if _, _, err := (peerCredentials{}).ServerHandshake(pipe); err == nil {
		t.Error("a connection that is no unix socket was admitted")
	}
}
