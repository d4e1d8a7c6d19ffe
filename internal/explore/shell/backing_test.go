package shell

import (
	"errors"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// backing is what holds the bytes of a volume for a machine, in one boot.
type backing interface {
	// opens opens it for a writer that believes to be in an epoch.
	opens(e lineage.Epoch) (device, error)
	// lands executes a command that was on its way, and writesBack what was buffered.
	lands(c simdisk.Write) error
	writesBack() error
	// takes says whether it would execute now what the machine sends.
	takes() bool
	// falls is the loss of the machine's power.
	falls() error
}

// device is an open one. Commands that it sent, and what it buffered, outlive it.
type device interface {
	Buffer(data string)
	Send(data string) (simdisk.Write, error)
	closes()
}

// attachment is a shared disk at a machine.
type attachment struct {
	*simdisk.Node
	m *machine
	v *volume
}

type sharedDevice struct{ *simdisk.Device }

func (d sharedDevice) closes() { d.Close() }

func (a attachment) opens(e lineage.Epoch) (device, error) {
	d, err := a.Open(e)
	if err != nil {
		return nil, err
	}
	return sharedDevice{d}, nil
}

func (a attachment) lands(c simdisk.Write) error { return a.Land(c) }
func (a attachment) writesBack() error           { return a.WriteBack() }
func (a attachment) falls() error                { return a.v.target.Crash(a.m.name) }

func (a attachment) takes() bool {
	view, err := a.Look(a.m.w.ctx, a.v.disk)
	registered := view.Registrants && view.Registered != 0
	return err == nil && view.Link == ownership.Attached && (view.Holder == 0 || view.Holding || registered)
}

// attached is the shared disk of a volume at a machine.
func (m *machine) attached(of shared.Disk) *simdisk.Node {
	return m.kernel(of.Volume).backing.(attachment).Node
}

// head is the head of a copy in a machine's pool. What is written to it is durable.
type head struct {
	m *machine
	v *volume
	// fallen: the machine has lost its power since.
	fallen   bool
	opened   int
	buffered []simdisk.Write
}

var errFallen = errors.New("the machine has lost its power")

func (h *head) opens(e lineage.Epoch) (device, error) {
	h.opened++
	return &headDevice{h: h, epoch: e, release: h.m.pool.Open(h.v.name)}, nil
}

func (h *head) lands(c simdisk.Write) error {
	if h.fallen {
		return errFallen
	}
	h.m.pool.Write(h.v.name, h.m.pool.Read(h.v.name)+c.Data+end)
	h.m.w.oracle.headWritten(h, c)
	return nil
}

func (h *head) writesBack() (err error) {
	all := h.buffered
	h.buffered = nil
	for _, c := range all {
		err = errors.Join(err, h.lands(c))
	}
	return err
}

func (h *head) takes() bool { return !h.fallen }

func (h *head) falls() error {
	h.fallen, h.buffered = true, nil
	return nil
}

// headDevice is an open head.
type headDevice struct {
	h       *head
	epoch   lineage.Epoch
	release func()
}

func (d *headDevice) command(data string) simdisk.Write {
	return simdisk.Write{Node: d.h.m.name, Epoch: d.epoch, Data: data}
}

func (d *headDevice) Buffer(data string)                      { d.h.buffered = append(d.h.buffered, d.command(data)) }
func (d *headDevice) Send(data string) (simdisk.Write, error) { return d.command(data), nil }

// closes writes back what is buffered when nothing has the head open any more, as the kernel does when a filesystem is
// unmounted for good.
func (d *headDevice) closes() {
	d.release()
	if d.h.opened--; d.h.opened == 0 && d.h.m.up.Load() {
		_ = d.h.writesBack()
	}
}
