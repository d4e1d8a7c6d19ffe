package simdisk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// store keeps the state of a target, its log, and which nodes have the device open.
type store interface {
	// change calls f with the state, while no other change is made, and keeps the result unless f
	// returns an error. Writes that f returns were executed.
	change(f func(*state) (executed []Write, err error)) error
	log() ([]Write, error)
	// open notes that a node has the device open until close is called. alone notes that it has
	// not, and keeps others from opening it until release is called; ErrInUse if it is open.
	open(node string) (closed func(), err error)
	alone(node string) (release func(), err error)
}

// memory is a store in one process.
type memory struct {
	mu      sync.Mutex
	state   state
	written []Write
	openers map[string]int
}

func (m *memory) change(f func(*state) ([]Write, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	executed, err := f(&m.state)
	m.written = append(m.written, executed...)
	return err
}

func (m *memory) log() ([]Write, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Write(nil), m.written...), nil
}

func (m *memory) open(node string) (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.openers[node]++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.openers[node]--
	}), nil
}

func (m *memory) alone(node string) (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.openers[node] > 0 {
		return nil, inUse(node)
	}
	return func() {}, nil
}

func inUse(node string) error {
	return fmt.Errorf("%w: the device is open on node %s", provision.ErrInUse, node)
}

// directory is a store that processes share. The lock of the file "lock" orders their changes.
//
//	state    the state, replaced as a whole
//	log      one line of JSON for each write, with a newline at its end once it is whole
//	open-N   locked by each process of node N that has the device open
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

// locked takes the lock of a file. how is an argument of flock.
func (d directory) locked(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (d directory) change(f func(*state) ([]Write, error)) error {
	lock, err := d.locked("lock", unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("locking the simulated target: %w", err)
	}
	defer lock.Close()
	var s state
	text, err := os.ReadFile(d.path("state"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return fmt.Errorf("reading the simulated target: %w", err)
	}
	executed, changed := f(&s)
	if err := d.append(executed); err != nil {
		return err
	}
	if changed != nil {
		return changed
	}
	return d.replace(&s)
}

// replace makes the state durable before it counts.
func (d directory) replace(s *state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := errors.Join(writeDurably(d.path("state.new"), os.O_TRUNC, text), os.Rename(d.path("state.new"), d.path("state"))); err != nil {
		return fmt.Errorf("keeping the state of the simulated target: %w", err)
	}
	return syncDir(string(d))
}

func writeDurably(path string, how int, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// append adds writes to the log. The part of a line that a process left when it died is ended
// first: that write was not answered, and it is not in the log.
func (d directory) append(writes []Write) error {
	if len(writes) == 0 {
		return nil
	}
	text, err := os.ReadFile(d.path("log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the log of the simulated target: %w", err)
	}
	var lines []byte
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines = append(lines, '\n')
	}
	for _, w := range writes {
		line, err := json.Marshal(w)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := writeDurably(d.path("log"), os.O_APPEND, lines); err != nil {
		return fmt.Errorf("writing the log of the simulated target: %w", err)
	}
	return nil
}

func (d directory) log() ([]Write, error) {
	f, err := os.Open(d.path("log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Write
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // what is left was not answered
		}
		if err != nil {
			return nil, err
		}
		var w Write
		if json.Unmarshal(line, &w) == nil {
			all = append(all, w)
		}
	}
}

func (d directory) open(node string) (func(), error) {
	f, err := d.locked("open-"+node, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

func (d directory) alone(node string) (func(), error) {
	f, err := d.locked("open-"+node, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, inUse(node)
	}
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}
