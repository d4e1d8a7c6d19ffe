package network

import (
	"context"
	"io"
	"net"
	"testing"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// startForward forwards to target and returns the address to connect to and
// a function that ends the forwarder and returns its result.
func startForward(t *testing.T, target string) (string, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := listen(t)
	done := make(chan error, 1)
	go func() { done <- forward(ctx, l, "", target) }()
	return l.Addr().String(), func() error { cancel(); return <-done }
}

func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := Dial(t.Context(), "", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func TestForwarderPassesTheEndOfOneDirectionAndKeepsTheOther(t *testing.T) {
	target := listen(t)
	go func() {
		conn, err := target.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		question, _ := io.ReadAll(conn) // ends only if the half-close arrives
		_, _ = conn.Write(append([]byte("answer to "), question...))
	}()
	address, stop := startForward(t, target.Addr().String())
	conn := connect(t, address)
	if _, err := conn.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || string(answer) != "answer to question" {
		t.Errorf("got %q, %v", answer, err)
	}
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestForwarderSurvivesATargetThatRefuses(t *testing.T) {
	target := listen(t)
	dead := target.Addr().String()
	target.Close()
	address, stop := startForward(t, dead)
	for range 2 {
		if got, _ := io.ReadAll(connect(t, address)); len(got) != 0 {
			t.Errorf("got %q from a target that refuses", got)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestForwarderEndsWithOpenConnectionsWhenItsContextEnds(t *testing.T) {
	target := listen(t)
	address, stop := startForward(t, target.Addr().String())
	conn := connect(t, address)
	inside, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	if err := stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from a connection that should be closed", n)
	}
}

func TestDialIntoANamespaceRefusesHostNames(t *testing.T) {
	if conn, err := Dial(t.Context(), "/proc/self/ns/net", "localhost:80"); err == nil {
		conn.Close()
		t.Error("a host name was accepted")
	}
}
