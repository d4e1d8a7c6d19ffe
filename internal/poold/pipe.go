package poold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"berth.dev/berth/internal/provision"
)

// A pipe crosses the socket as a descriptor, with the first bytes of a connection of its own. So the bytes of a
// stream go through the kernel's pipe alone, and either process sees by the end of the connection that the
// other one has ended.

// passing are the credentials of a client's connection that brings a pipe.
type passing struct {
	credentials.TransportCredentials
	pipe *os.File
}

func newPassing(pipe *os.File) passing { return passing{insecure.NewCredentials(), pipe} }

// ClientHandshake implements credentials.TransportCredentials.
func (p passing) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("a descriptor can be passed on a unix socket only")
	}
	_, info, err := p.TransportCredentials.ClientHandshake(ctx, authority, conn)
	return &bringing{UnixConn: socket, pipe: p.pipe}, info, err
}

// Clone implements credentials.TransportCredentials.
func (p passing) Clone() credentials.TransportCredentials { return p }

// bringing passes a descriptor with the first bytes that are written.
type bringing struct {
	*net.UnixConn
	once sync.Once
	pipe *os.File
}

// Write implements net.Conn.
func (c *bringing) Write(b []byte) (n int, err error) {
	c.once.Do(func() { n, err = c.pass(b) })
	if err != nil || n == len(b) {
		return n, err
	}
	rest, err := c.UnixConn.Write(b[n:])
	return n + rest, err
}

// pass writes the first bytes with the descriptor. The caller may close the pipe meanwhile.
func (c *bringing) pass(b []byte) (n int, err error) {
	raw, err := c.pipe.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("passing the pipe: %w", err)
	}
	var failure error
	err = raw.Control(func(fd uintptr) { n, _, failure = c.WriteMsgUnix(b, unix.UnixRights(int(fd)), nil) })
	return n, errors.Join(err, failure)
}

// receiving takes the descriptors that come with the bytes of a connection. It keeps one until it is taken or the
// connection ends, and closes all others at once.
type receiving struct {
	*net.UnixConn
	room [64]byte // for a message with several descriptors; the kernel closes those that it has no room for

	mu sync.Mutex
	// came is how many descriptors came, and kept the first of them.
	came   int
	kept   *os.File
	closed bool
}

// Read implements net.Conn.
func (c *receiving) Read(b []byte) (int, error) {
	n, oob, flags, _, err := c.ReadMsgUnix(b, c.room[:])
	if oob > 0 {
		c.note(c.room[:oob], flags&unix.MSG_CTRUNC != 0)
	}
	if errors.Is(err, io.EOF) {
		err = io.EOF // Read does not wrap it
	}
	return max(n, 0), err
}

func (c *receiving) note(message []byte, truncated bool) {
	parts, err := unix.ParseSocketControlMessage(message)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || truncated {
		c.came++ // one that is missing beside those that are here
	}
	for i := range parts {
		descriptors, _ := unix.ParseUnixRights(&parts[i]) // of another kind of message there are none
		for _, fd := range descriptors {
			c.came++
			if c.came > 1 || c.closed {
				_ = unix.Close(fd)
				continue
			}
			_ = unix.SetNonblock(fd, true) // the caller may not hold a thread of this process up
			c.kept = os.NewFile(uintptr(fd), "pipe")
		}
	}
}

// take returns the pipe that came with the connection, once. Its end must be the one to write into, or the one to
// read from, as mode says.
func (c *receiving) take(mode int) (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.came != 1 || c.kept == nil {
		return nil, fmt.Errorf("%w: one pipe must come with the connection, for one call, and %d descriptors came", provision.ErrInvalid, c.came)
	}
	if !isPipe(c.kept, mode) {
		return nil, fmt.Errorf("%w: the descriptor that came with the connection is not the right end of a pipe", provision.ErrInvalid)
	}
	pipe := c.kept
	c.kept = nil
	return pipe, nil
}

func isPipe(f *os.File, mode int) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var st unix.Stat_t
	var flags int
	var failure error
	err = raw.Control(func(fd uintptr) {
		if failure = unix.Fstat(int(fd), &st); failure == nil {
			flags, failure = unix.FcntlInt(fd, unix.F_GETFL, 0)
		}
	})
	return err == nil && failure == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && flags&unix.O_ACCMODE == mode
}

// Close implements net.Conn.
func (c *receiving) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.kept != nil {
		_ = c.kept.Close()
		c.kept = nil
	}
	return c.UnixConn.Close()
}

// pipeOf returns the pipe that came with the connection of a call.
func pipeOf(ctx context.Context, mode int) (*os.File, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, errors.New("the caller is not known")
	}
	info, ok := p.AuthInfo.(peerInfo)
	if !ok {
		return nil, errors.New("the caller is not known")
	}
	return info.conn.take(mode)
}
