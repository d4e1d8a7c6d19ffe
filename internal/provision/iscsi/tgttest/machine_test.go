//go:build platform

package tgttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/run"
)

// machine is a node: a session with the target, and a kernel that is played around it.
type machine struct {
	*san
	name string

	mu       sync.Mutex
	session  *initiator
	scanned  bool
	openers  int
	buffered []string
	refused  bool
}

func (*machine) Query(context.Context, run.Command) ([]byte, error) {
	return nil, errors.New("no query is made")
}

// Change plays iscsiadm.
func (m *machine) Change(c run.Command) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch c.Operation {
	case "iscsiadm login":
		if !m.admit() {
			return nil, &run.ExitError{Command: c, Code: 24}
		}
		if err := m.logIn(); err != nil {
			m.leave()
			return nil, &run.ExitError{Command: c, Code: 4, Stderr: err.Error()}
		}
	case "iscsiadm logout":
		m.session.close()
		m.session = nil
		m.leave()
	}
	return nil, nil
}

func (m *machine) logIn() (err error) {
	m.session, err = logIn(m.t.Context(), m.address, "iqn.2026-01.dev.berth.test:"+m.name, targetName, m.isid())
	return err
}

// relogin begins the session anew. The disk stays, as it does in the kernel.
func (m *machine) relogin() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == nil {
		return nil
	}
	m.session.close()
	return m.logIn()
}

func (m *machine) Sessions() ([]iscsi.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == nil {
		return nil, nil
	}
	s := iscsi.Session{Name: "session1", Target: targetName, Interface: "default", LoggedIn: true, Host: 3}
	if m.scanned {
		s.Units = []iscsi.Unit{{Address: "3:0:0:1", Host: 3, LUN: unit, State: "running", Path: "/dev/sdb", Number: "8:16", Identity: provision.WholeIdentity("7", serial)}}
	}
	return []iscsi.Session{s}, nil
}

func (*machine) Disks() ([]iscsi.Unit, error) { return nil, nil }

func (m *machine) Scan(context.Context, iscsi.Session, int) error { return m.know(true) }
func (m *machine) Remove(iscsi.Unit) error                        { return m.know(false) }
func (*machine) Rescan(iscsi.Unit) error                          { return nil }

func (m *machine) know(unit bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scanned = unit
	return nil
}

func (m *machine) used(string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.openers > 0 {
		return "a process has it open", nil
	}
	return "", nil
}

func (m *machine) Open(iscsi.Unit, bool) (iscsi.Device, error) {
	if sessions, _ := m.Sessions(); len(sessions) == 0 || len(sessions[0].Units) == 0 {
		return nil, unix.ENXIO
	}
	return device{m}, nil
}

type device struct{ *machine }

func (d device) Execute(c scsi.Command, _ time.Duration) (scsi.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session.execute(unit, c.CDB, c.Out, c.In)
}

func (d device) Sync() error {
	err := d.writeBack()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused {
		d.refused = false
		return unix.EIO
	}
	return err
}

func (d device) Drop() error {
	_ = d.writeBack() // what is refused is forgotten
	return nil
}

func (device) Close() error { return nil }

func (m *machine) open() (closes func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.openers++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.openers--
	}
}

func (m *machine) buffer(block string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buffered = append(m.buffered, block)
}

func (m *machine) writeBack() (err error) {
	m.mu.Lock()
	pages := m.buffered
	m.buffered = nil
	m.mu.Unlock()
	for _, block := range pages {
		err = errors.Join(err, m.write(block))
	}
	return err
}

// write writes a block into the next place of the unit, by WRITE (10). A condition that the target
// reports in place of writing is read over, as the kernel does.
func (m *machine) write(block string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := make([]byte, sector)
	copy(data, block)
	at := m.place()
	cdb := []byte{0x2a, 0, 0, 0, 0, byte(at), 0, 0, 1, 0}
	for range 4 {
		r, err := m.session.execute(unit, cdb, data, 0)
		if err == nil {
			err = r.Err()
		}
		if sense, ok := errors.AsType[*scsi.SenseError](err); ok && sense.Key == scsi.UnitAttention {
			continue
		}
		if err != nil {
			m.refused = true
			return fmt.Errorf("writing %q: %w", block, err)
		}
		return nil
	}
	return errors.New("the target only reports conditions")
}
