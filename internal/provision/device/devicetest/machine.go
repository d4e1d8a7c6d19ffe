package devicetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/gpt"
)

// ErrCrash is the error of every effect that a process tries after its end.
var ErrCrash = errors.New("the process ends here")

// Machine has disks. It outlives the provisioners that are made over it.
type Machine struct {
	mu       sync.Mutex
	disks    map[string]*plugged
	plugs    int
	watchers map[int]func(string)
	watches  int
	effects  int
	crashAt  int
	before   func()
	// nodes are the nodes that lead to another partition than their own, and the node of that.
	nodes map[string]string
}

var _ device.Disks = (*Machine)(nil)

// plugged is a disk and the kernel's facts about it.
type plugged struct {
	device.Disk
	*Medium
	held    bool
	mounted int
	open    map[string]int
	fault   error
	hang    chan struct{}
	lies    bool
	plain   bool
}

// Disk describes a disk with an identity and a size.
func Disk(name, identity string, size int64) device.Disk {
	return device.Disk{Name: name, Identity: identity, Geometry: gpt.Geometry{Size: size, Block: 512}}
}

// NewMachine returns a machine with empty disks.
func NewMachine(disks ...device.Disk) *Machine {
	m := &Machine{disks: map[string]*plugged{}, watchers: map[int]func(string){}}
	for _, d := range disks {
		m.Plug(d, NewMedium())
	}
	return m
}

// Plug puts a disk in; the kernel finds its partitions by its table.
func (m *Machine) Plug(d device.Disk, medium *Medium) {
	m.mu.Lock()
	m.plugs++
	d.Sequence = strconv.Itoa(m.plugs)
	p := &plugged{Disk: d, Medium: medium, open: map[string]int{}}
	p.scan()
	m.disks[d.Name] = p
	m.mu.Unlock()
	m.tell(d.Name)
}

// Pull takes a disk out, and returns its medium.
func (m *Machine) Pull(name string) *Medium {
	m.mu.Lock()
	medium := m.disks[name].Medium
	m.disks[name].fault = errors.New("no such device")
	delete(m.disks, name)
	m.mu.Unlock()
	m.tell(name)
	return medium
}

// Reboot makes the kernel find everything anew, and closes whatever was open.
func (m *Machine) Reboot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.disks {
		p.held, p.mounted, p.open = false, 0, map[string]int{}
		p.scan()
	}
}

// Edit changes the kernel's description of a disk, and tells the watchers.
func (m *Machine) Edit(name string, edit func(*device.Disk)) {
	m.mu.Lock()
	edit(&m.disks[name].Disk)
	m.mu.Unlock()
	m.tell(name)
}

// Fail makes every operation on a disk fail; nil heals it.
func (m *Machine) Fail(name string, err error) {
	m.with(name, func(p *plugged) { p.fault = err })
	m.tell(name)
}

// Hang makes every reading from a disk wait until resume is called.
func (m *Machine) Hang(name string) (resume func()) {
	hang := make(chan struct{})
	m.with(name, func(p *plugged) { p.hang = hang })
	m.tell(name)
	return sync.OnceFunc(func() {
		m.with(name, func(p *plugged) { p.hang = nil })
		close(hang)
	})
}

// Lie makes a disk say that it overwrote data, and not do it.
func (m *Machine) Lie(name string, lies bool) { m.with(name, func(p *plugged) { p.lies = lies }) }

// Plain makes a disk one for which the kernel does not vouch that discarded data reads as zeros.
func (m *Machine) Plain(name string) { m.with(name, func(p *plugged) { p.plain = true }) }

// CrashAfter ends the process after so many more effects: every later attempt fails,
// and has no effect. Live takes that back.
func (m *Machine) CrashAfter(effects int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.effects, m.crashAt = 0, effects+1
}

// Live lets a new process have effects, and returns how many the last one tried to have
// since CrashAfter.
func (m *Machine) Live() (effects int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashAt = 0
	return m.effects
}

// BeforeHold calls f once, just before a disk is opened for writing the next time.
func (m *Machine) BeforeHold(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = f
}

// effect is called with mu held.
func (m *Machine) effect() error {
	if m.effects++; m.crashAt > 0 && m.effects >= m.crashAt {
		return ErrCrash
	}
	return nil
}

// with runs f on a disk that is there.
func (m *Machine) with(name string, f func(*plugged)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.disks[name]
	if p == nil {
		panic(fmt.Sprintf("there is no disk %s", name))
	}
	f(p)
}

// tell tells the watchers that a disk was written.
func (m *Machine) tell(name string) {
	m.mu.Lock()
	var told []func(string)
	for _, w := range m.watchers {
		told = append(told, w)
	}
	m.mu.Unlock()
	for _, w := range told {
		w("/dev/" + name)
	}
}

// List implements device.Disks.
func (m *Machine) List() ([]device.Disk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []device.Disk
	for _, p := range m.disks {
		list = append(list, p.describe())
	}
	return list, nil
}

// Find implements device.Disks.
func (m *Machine) Find(name string) (device.Disk, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.disks[name]; p != nil {
		d := p.describe()
		d.Links = nil
		return d, true
	}
	return device.Disk{}, false
}

func (p *plugged) describe() device.Disk {
	d := p.Disk
	d.Partitions = slices.Clone(d.Partitions)
	return d
}

// Exists says whether a node leads to any partition.
func (m *Machine) Exists(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, ok := m.partition(path)
	return ok
}

// Mislead makes the node of a partition lead to another one.
func (m *Machine) Mislead(path, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		m.nodes = map[string]string{}
	}
	m.nodes[path] = to
}

// Leads implements device.Disks.
func (m *Machine) Leads(path string, is provision.Identity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, part, ok := m.partition(path)
	if !ok {
		return fmt.Errorf("there is no %s", path)
	}
	if got := provision.PartitionIdentity(p.Sequence, p.Identity, part.Start, part.Length); got != is {
		return fmt.Errorf("%w: %s is another device: %s, not %s", provision.ErrUnavailable, path, got, is)
	}
	return nil
}

// Keep implements device.Disks.
func (m *Machine) Keep(path string) (io.Closer, error) {
	if !m.Exists(path) {
		return nil, fmt.Errorf("there is no %s", path)
	}
	return closer(m.Open(path)), nil
}

type closer func()

func (c closer) Close() error {
	c()
	return nil
}

// Watch implements device.Disks.
func (m *Machine) Watch(ctx context.Context, ready func(), written func(string)) error {
	m.mu.Lock()
	m.watches++
	number := m.watches
	m.watchers[number] = written
	m.mu.Unlock()
	ready()
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watchers, number)
	return nil
}

// partition is called with mu held.
func (m *Machine) partition(path string) (*plugged, device.Partition, bool) {
	if to, wrong := m.nodes[path]; wrong {
		path = to
	}
	for _, p := range m.disks {
		for _, part := range p.Partitions {
			if "/dev/"+part.Name == path {
				return p, part, true
			}
		}
	}
	return nil, device.Partition{}, false
}
