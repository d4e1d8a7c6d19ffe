package poold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// peerCredentials admits root and poold's own user, by the user that the kernel reports
// for the process at the other end. The socket's mode enforces the same; this check also
// protects a socket that was passed on or made accessible by mistake.
type peerCredentials struct{}

type peerInfo struct {
	uid  uint32
	conn *receiving
}

func (peerInfo) AuthType() string { return "peercred" }

func (peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("poold is served on unix sockets only")
	}
	uid, err := peerUID(socket)
	if err != nil {
		return nil, nil, err
	}
	if !admitted(uid) {
		return nil, nil, fmt.Errorf("user %d may not use poold", uid)
	}
	passed := &receiving{UnixConn: socket}
	return passed, peerInfo{uid, passed}, nil
}

func admitted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

func peerUID(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("looking at peer: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("looking at peer: %w", err)
	}
	if credErr != nil {
		return 0, fmt.Errorf("looking at peer: %w", credErr)
	}
	return cred.Uid, nil
}

func (peerCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are the server's")
}

func (peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "peercred"}
}
func (p peerCredentials) Clone() credentials.TransportCredentials { return p }
func (peerCredentials) OverrideServerName(string) error           { return nil }
