package lvm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/run"
)

// guard caches the machine's own LVM settings.
type guard struct {
	mu    sync.Mutex
	known bool
	host  group.HostSettings
	// exposed are devices that stand for the kinds of devices on the machine that pods write to.
	exposed []string
}

// reads returns a device of a kind that pods write to, now or later, and that the machine's own
// LVM reads. It is empty if LVM reads none, or if the settings are not known.
func (g *guard) reads() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.known {
		return ""
	}
	return g.host.Reads(g.exposed...)
}

// saw notes which kinds of devices there are, and returns the machine's settings.
func (g *guard) saw(blocks map[string]group.Block) group.HostSettings {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.exposed = group.Exposed(blocks)
	return g.host
}

func (g *guard) isKnown() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known
}

// learnHost reads the machine's LVM settings. The command reads no disk.
func (p *reader) learnHost(ctx context.Context) error {
	out, err := p.ask(ctx, p.tool.HostCommand())
	if err != nil {
		return err
	}
	host, err := group.ParseHost(out)
	if err != nil {
		return err
	}
	if host.DevicesFile != "" && !p.config.Devices.DevicesFile(host.DevicesFile) {
		host.DevicesFile = "" // without the file LVM reads all devices
	}
	p.guard.mu.Lock()
	defer p.guard.mu.Unlock()
	p.guard.known, p.guard.host = true, host
	return nil
}

// askGuarded is ask for a command that reads disks.
func (p *reader) askGuarded(ctx context.Context, c run.Command) ([]byte, error) {
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
func (p *reader) change(c run.Command) ([]byte, error) {
	c, err := p.guarded(c)
	if err != nil {
		return nil, err
	}
	return p.config.Runner.Change(c)
}

// guarded returns a command with a filter that keeps LVM from the devices that pods write to.
func (p *reader) guarded(c run.Command) (run.Command, error) {
	blocks, err := p.config.Devices.Blocks()
	if err != nil {
		return c, fmt.Errorf("looking which devices pods write to: %w", err)
	}
	c.Args = slices.Clone(c.Args)
	c.Args[group.ConfigAt] += " " + p.guard.saw(blocks).With(group.Patterns(group.WrittenByPods(blocks), blocks))
	return c, nil
}

// unknownDevice is LVM's word for a physical volume that is away.
const unknownDevice = "[unknown]"

// strange returns a function that says why a physical volume is none of the node's. The function
// returns an empty string for one that is.
func (p *reader) strange() (of func(device string) string, err error) {
	blocks, err := p.config.Devices.Blocks()
	if err != nil {
		return nil, fmt.Errorf("looking which devices pods write to: %w", err)
	}
	written := group.WrittenByPods(blocks)
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
