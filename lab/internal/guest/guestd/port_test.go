package main

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"
)

func TestALogThatIsNotReadForAWhileArrivesWhole(t *testing.T) {
	r, port, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("a line of the kubelet's\n"), 20_000) // more than a pipe holds
	written := make(chan error, 1)
	asked := time.Millisecond // many times before the reader begins
	go func() {
		_, err := patient{port, asked}.Write(want)
		written <- err
		port.Close()
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Errorf("writing failed: %v", err)
	}
	if got := append(first, rest...); !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want %d", len(got), len(want))
	}
}

func TestAServiceDoesNotWaitForAPortThatIsGone(t *testing.T) {
	r, port, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	log, err := logTo(port)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := log.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Write(make([]byte, 4096)); err != nil {
			t.Fatalf("writing a log line: %v", err)
		}
	}
}
