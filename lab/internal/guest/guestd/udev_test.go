package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The daemon of a loaded machine may come to ask for credentials only after the message
// has arrived.
func TestAMessageThatUdevHasNotAskedForYetBearsItsSendersCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "control")
	socket, err := listenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	client, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(client)
	if err := syscall.Connect(client, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatalf("nobody has accepted a connection yet, and a client cannot connect: %v", err)
	}
	accepted, _, err := syscall.Accept(int(socket.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(accepted)
	if _, err := syscall.Write(client, []byte("ping")); err != nil {
		t.Fatal(err)
	}
	oob := make([]byte, syscall.CmsgSpace(syscall.SizeofUcred))
	_, n, _, _, err := syscall.Recvmsg(accepted, make([]byte, 16), oob, 0)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("the message bears %d control messages (%v), want its sender's credentials", len(messages), err)
	}
	sender, err := syscall.ParseUnixCredentials(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	if int(sender.Pid) != os.Getpid() || int(sender.Uid) != os.Getuid() {
		t.Errorf("the message says that process %d of user %d sent it; process %d of user %d did", sender.Pid, sender.Uid, os.Getpid(), os.Getuid())
	}
}
