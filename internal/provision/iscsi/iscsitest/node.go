package iscsitest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/run"
)

// Node is a machine: its kernel, and its open-iscsi.
type Node struct {
	t    *Target
	name string
	// Commands of iscsiadm that were run.
	Commands []string
	// Exit is the exit code of the next commands by their operation.
	Exit map[string]int
	// Hang, if it is set, is closed when commands for the device are answered again.
	Hang chan struct{}
	// Around, if it is set, runs around every command for the device.
	Around func(cdb []byte, execute func() scsi.Result) (scsi.Result, error)
	// Scanning, if it is set, runs before each search for a unit.
	Scanning func()
	// Beside are further units of the node's session, and Strangers the addresses of those that are no disks.
	Beside    []iscsi.Unit
	Strangers []string
	// Interface of the node's session, "default" if it is empty.
	Interface string
	// Others are disks of the machine that the target does not have.
	Others []iscsi.Unit
	// Holders are devices that are made of the disk, and Multipath and LVM are of them.
	Holders        []string
	Multipath, LVM string
	// Extra are sessions beside the node's own.
	Extra []iscsi.Session
	// records of open-iscsi, by portal.
	records map[string]bool
}

var (
	_ iscsi.Kernel = (*Node)(nil)
	_ run.Runner   = (*Node)(nil)
)

// Node returns a machine that is not logged in.
func (t *Target) Node(name string) *Node {
	return &Node{t: t, name: name, Exit: map[string]int{}, records: map[string]bool{}}
}

// Records are how many records open-iscsi has.
func (n *Node) Records() int { return len(n.records) }

// Query implements run.Runner.
func (*Node) Query(context.Context, run.Command) ([]byte, error) {
	return nil, errors.New("no query is made")
}

// Change implements run.Runner.
func (n *Node) Change(c run.Command) ([]byte, error) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	n.Commands = append(n.Commands, c.String())
	if code := n.change(c); code != 0 {
		return nil, &run.ExitError{Command: c, Code: code, Stderr: "iscsiadm: it failed"}
	}
	return nil, nil
}

func (n *Node) change(c run.Command) int {
	if code := n.Exit[c.Operation]; code != 0 {
		return code
	}
	portal := ""
	if i := slices.Index(c.Args, "-p"); i >= 0 {
		portal = c.Args[i+1]
	}
	switch c.Operation {
	case "iscsiadm new":
		n.records[portal] = true
	case "iscsiadm update":
		if !n.records[portal] {
			return 21
		}
	case "iscsiadm login":
		return n.login(portal)
	case "iscsiadm logout":
		if n.t.sessions[n.name] == nil {
			return 21
		}
		delete(n.t.sessions, n.name)
	case "iscsiadm delete":
		if len(n.records) == 0 {
			return 21
		}
		clear(n.records)
	default:
		return 7
	}
	return 0
}

func (n *Node) login(portal string) int {
	switch {
	case !n.records[portal]:
		return 21
	case n.t.sessions[n.name] != nil:
		return 15
	case n.t.Shares > 0 && len(n.t.sessions) >= n.t.Shares:
		return 24
	}
	s := &session{node: n.name}
	n.t.relogin(s)
	n.t.sessions[n.name] = s
	return 0
}

// Sessions implements iscsi.Kernel.
func (n *Node) Sessions() ([]iscsi.Session, error) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	all := slices.Clone(n.Extra)
	if s := n.t.sessions[n.name]; s != nil {
		own := iscsi.Session{Name: "session1", Target: n.t.TargetName, Interface: cmp.Or(n.Interface, "default"), Connection: fmt.Sprint(s.nexus), LoggedIn: !s.away, Host: 3}
		own.Units, own.Others = slices.Clone(n.Beside), n.Strangers
		if s.units {
			own.Units = append(own.Units, n.unit(s))
		}
		all = append(all, own)
	}
	return all, nil
}

func (n *Node) unit(s *session) iscsi.Unit {
	state := "running"
	if s.away {
		state = "blocked"
	}
	return iscsi.Unit{Address: fmt.Sprintf("3:0:0:%d", n.t.LUN), Host: 3, LUN: n.t.LUN, State: state, WWID: "naa." + n.t.Name, Path: "/dev/sdb", Number: "8:16",
		Holders: n.Holders, Multipath: n.Multipath, LVM: n.LVM, Identity: provision.WholeIdentity("7", "naa."+n.t.Name)}
}

// Disks implements iscsi.Kernel.
func (n *Node) Disks() ([]iscsi.Unit, error) {
	sessions, err := n.Sessions()
	all := slices.Clone(n.Others)
	for _, s := range sessions {
		all = append(all, s.Units...)
	}
	return all, err
}

// Scan implements iscsi.Kernel.
func (n *Node) Scan(_ context.Context, _ iscsi.Session, lun int) error {
	if n.Scanning != nil {
		n.Scanning()
	}
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	if s := n.t.sessions[n.name]; s != nil && lun == n.t.LUN {
		s.units = true
	}
	return nil
}

// Rescan implements iscsi.Kernel.
func (*Node) Rescan(iscsi.Unit) error { return nil }

// Remove implements iscsi.Kernel.
func (n *Node) Remove(iscsi.Unit) error {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	if s := n.t.sessions[n.name]; s != nil {
		s.units = false
	}
	return nil
}

// Used is what iscsi.Config asks.
func (n *Node) Used(string) (string, error) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	if s := n.t.sessions[n.name]; s != nil && s.openers > 0 {
		return "process 7 has it open", nil
	}
	return "", nil
}

// Open implements iscsi.Kernel.
func (n *Node) Open(u iscsi.Unit, exclusively bool) (iscsi.Device, error) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	s := n.t.sessions[n.name]
	switch {
	case s == nil || !s.units || u.Path != "/dev/sdb":
		return nil, unix.ENXIO
	case exclusively && len(n.Holders) > 0:
		return nil, iscsi.ErrBusy
	}
	return device{n, s}, nil
}

type device struct {
	*Node
	s *session
}

// Execute implements iscsi.Device.
func (d device) Execute(c scsi.Command, _ time.Duration) (scsi.Result, error) {
	if d.Hang != nil {
		<-d.Hang
	}
	execute := func() scsi.Result {
		d.t.mu.Lock()
		defer d.t.mu.Unlock()
		if d.s.away {
			return scsi.Result{Host: 0x0e}
		}
		return d.t.execute(d.s, c.CDB, c.Out)
	}
	if d.Around != nil {
		return d.Around(c.CDB, execute)
	}
	return execute(), nil
}

// Sync implements iscsi.Device.
func (d device) Sync() error {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	_ = d.writeBack(d.s) // the session remembers what was refused
	if d.s.refused {
		d.s.refused = false
		return unix.EIO
	}
	return nil
}

// Drop implements iscsi.Device.
func (d device) Drop() error {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	_ = d.writeBack(d.s)
	return nil
}

// Close implements iscsi.Device.
func (device) Close() error { return nil }

// Holds opens the device as a mount does, and returns the function that closes it.
func (n *Node) Holds() (closes func()) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	s := n.t.sessions[n.name]
	s.openers++
	return func() {
		n.t.mu.Lock()
		defer n.t.mu.Unlock()
		s.openers--
	}
}

// Write writes a block through to the target.
func (n *Node) Write(block string) error {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	return n.t.write(n.t.sessions[n.name], block)
}

// Buffer writes a block into the node's pages.
func (n *Node) Buffer(block string) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	s := n.t.sessions[n.name]
	s.buffered = append(s.buffered, block)
}

// WriteBack writes the node's pages.
func (n *Node) WriteBack() error {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	return n.writeBack(n.t.sessions[n.name])
}

func (n *Node) writeBack(s *session) (err error) {
	for _, block := range s.buffered {
		err = errors.Join(err, n.t.write(s, block))
	}
	s.buffered = nil
	return err
}

// Transcript returns the commands that were run, one a line.
func (n *Node) Transcript() string { return strings.Join(n.Commands, "\n") + "\n" }
