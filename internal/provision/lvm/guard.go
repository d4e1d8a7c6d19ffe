package lvm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"berth.dev/berth/internal/run"
)

// guard is what is known of the machine's own settings of LVM.
type guard struct {
	mu    sync.Mutex
	known bool
	host  hostSettings
	// zvols says that the machine has some.
	zvols bool
}

// reads returns a device of those that pods write to, or will, which the machine's own LVM
// reads; empty if it reads none, or if that is not known.
func (g *guard) reads() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.known:
		return ""
	case g.zvols:
		return g.host.reads(slices.Concat(someLoops, someZvols)...)
	}
	return g.host.reads(someLoops...)
}

// saw notes what kinds of devices there are, and returns the machine's settings.
func (g *guard) saw(blocks map[string]Block) hostSettings {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.zvols = false
	for name := range blocks {
		g.zvols = g.zvols || strings.HasPrefix(name, "zd")
	}
	return g.host
}

func (g *guard) isKnown() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known
}

// learnHost reads the machine's settings of LVM. That looks at no disk.
func (p *Provisioner) learnHost(ctx context.Context) error {
	out, err := p.ask(ctx, p.config.hostCommand())
	if err != nil {
		return err
	}
	host, err := parseHost(out)
	if err != nil {
		return err
	}
	if host.devicesFile != "" && !p.config.Devices.DevicesFile(host.devicesFile) {
		host.devicesFile = "" // without the file LVM reads all devices
	}
	p.guard.mu.Lock()
	defer p.guard.mu.Unlock()
	p.guard.known, p.guard.host = true, host
	return nil
}

// askGuarded is ask for a command that reads disks.
func (p *Provisioner) askGuarded(ctx context.Context, c run.Command) ([]byte, error) {
	if !p.guard.isKnown() {
		if err := p.learnHost(ctx); err != nil {
			return nil, err
		}
	}
	c, err := p.guarded(c)
	if err != nil {
		return nil, err
	}
	return p.ask(ctx, c)
}

// change runs a command that changes a group, which was read before.
func (p *Provisioner) change(c run.Command) ([]byte, error) {
	c, err := p.guarded(c)
	if err != nil {
		return nil, err
	}
	return p.config.Runner.Change(c)
}

// guarded is a command that does not read what pods write.
func (p *Provisioner) guarded(c run.Command) (run.Command, error) {
	blocks, err := p.config.Devices.Blocks()
	if err != nil {
		return c, fmt.Errorf("looking which devices pods write to: %w", err)
	}
	c.Args = slices.Clone(c.Args)
	c.Args[configAt] += " " + p.guard.saw(blocks).with(patterns(writtenByPods(blocks), blocks))
	return c, nil
}

// unknownDevice is LVM's word for a physical volume that is away.
const unknownDevice = "[unknown]"

// strange returns what says why a physical volume is none of the node's; nothing of one that
// is.
func (p *Provisioner) strange() (of func(device string) string, err error) {
	blocks, err := p.config.Devices.Blocks()
	if err != nil {
		return nil, fmt.Errorf("looking which devices pods write to: %w", err)
	}
	written := writtenByPods(blocks)
	return func(device string) string {
		if device == unknownDevice {
			return ""
		}
		name, err := p.config.Devices.Name(device)
		if err != nil {
			return "it went while LVM looked at it"
		}
		return written[name]
	}, nil
}
