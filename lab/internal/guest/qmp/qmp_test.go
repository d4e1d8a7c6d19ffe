package qmp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// serve answers one client: each line it sends gets the next of the answers.
// It returns the socket and what the client sent, readable when it has closed.
func serve(t *testing.T, answers ...string) (socket string, sent func() []string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "qmp.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var lines []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintln(conn, `{"QMP": {"version": {}, "capabilities": []}}`)
		for scanner := bufio.NewScanner(conn); scanner.Scan(); {
			lines = append(lines, scanner.Text())
			if len(answers) > 0 {
				fmt.Fprintln(conn, answers[0])
				answers = answers[1:]
			}
		}
	}()
	return socket, func() []string { <-done; return lines }
}

const ok = `{"return": {}}`

func dial(t *testing.T, socket string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommandsAreSentWithArgumentsAndAnswersDecoded(t *testing.T) {
	socket, sent := serve(t, ok, `{"event": "STOP", "data": {}}`+"\n"+`{"return": {"status": "running"}}`)
	c := dial(t, socket)
	var status struct{ Status string }
	if err := c.Execute(t.Context(), "query-status", map[string]any{"id": "x"}, &status); err != nil {
		t.Fatal(err)
	}
	if status.Status != "running" {
		t.Errorf("got %+v: the event before the answer was taken for it", status)
	}
	c.Close()
	want := `{"execute":"qmp_capabilities"}|{"execute":"query-status","arguments":{"id":"x"}}`
	if got := strings.Join(sent(), "|"); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestRefusalNamesTheCommandAndLeavesTheClientUsable(t *testing.T) {
	socket, _ := serve(t, ok, `{"error": {"class": "DeviceNotFound", "desc": "Device 'x' not found"}}`, ok)
	c := dial(t, socket)
	defer c.Close()
	err := c.Execute(t.Context(), "device_del", nil, nil)
	refusal, ok := errors.AsType[*Error](err)
	if !ok || refusal.Class != "DeviceNotFound" || !strings.Contains(err.Error(), "device_del") {
		t.Errorf("got %v", err)
	}
	if err := c.Execute(t.Context(), "query-status", nil, nil); err != nil {
		t.Errorf("next command: %v", err)
	}
}

func TestDeletedDeviceIsNoticedBeforeAndAfterWaitingBegins(t *testing.T) {
	event := func(device string) string {
		return fmt.Sprintf(`{"event": "DEVICE_DELETED", "data": {"device": %q}}`, device)
	}
	for name, answer := range map[string]string{
		"event before the answer":    event("dev-disk1") + "\n" + ok,
		"event after the answer":     ok + "\n" + event("dev-disk1"),
		"event of another comes too": event("dev-disk2") + "\n" + ok + "\n" + event("dev-disk1"),
	} {
		t.Run(name, func(t *testing.T) {
			socket, _ := serve(t, ok, answer)
			c := dial(t, socket)
			defer c.Close()
			if err := c.Execute(t.Context(), "device_del", nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := c.WaitDeleted(t.Context(), "dev-disk1"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSilentQEMUIsGivenUpWhenTheContextEnds(t *testing.T) {
	socket, _ := serve(t, ok) // no answer to the second command
	c := dial(t, socket)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Execute(ctx, "query-status", nil, nil) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDialFailsWithoutAListener(t *testing.T) {
	if c, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		c.Close()
		t.Error("connected to nobody")
	}
}
