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
	exposed [][]string
	// remote are the devices of a network, each with all its names. Those that bear a physical volume are the first.
	remote  [][]string
	members int
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

// readsRemote is reads for the devices of a network. If the machine has no volume group, which it may have without an
// LVM of its own, only those count that bear a physical volume.
func (g *guard) readsRemote(groups bool) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	devices := g.remote
	if !groups {
		devices = devices[:g.members]
	}
	if !g.known {
		return ""
	}
	return g.host.Reads(devices...)
}

// saw notes which devices there are, and returns the machine's settings.
func (g *guard) saw(blocks map[string]group.Block, known func(name string) group.Known) group.HostSettings {
	var members, others [][]string
	for _, name := range group.OnNetwork(blocks) {
		k := known(name)
		names := append([]string{group.Path(name)}, k.Links...)
		if k.Member {
			members = append(members, names)
		} else {
			others = append(others, names)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.exposed, g.remote, g.members = group.Exposed(blocks), append(members, others...), len(members)
	return g.host
}

// listed says whether an administrator has listed the devices that LVM reads.
func (g *guard) listed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.host.DevicesFile != ""
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
	blocks, written, err := p.written()
	if err != nil {
		return c, err
	}
	c.Args = slices.Clone(c.Args)
	c.Args[group.ConfigAt] += " " + p.guard.saw(blocks, p.config.Devices.Known).With(group.Patterns(written, blocks))
	return c, nil
}

// written returns the block devices, and why pods write to them.
func (p *reader) written() (blocks map[string]group.Block, why map[string]string, err error) {
	blocks, err = p.config.Devices.Blocks()
	if err != nil {
		return nil, nil, fmt.Errorf("looking which devices pods write to: %w", err)
	}
	return blocks, group.WrittenByPods(blocks, p.guard.listed()), nil
}

// unknownDevice is LVM's word for a physical volume that is away.
const unknownDevice = "[unknown]"

// strange returns a function that says why a physical volume is none of the node's. The function
// returns an empty string for one that is.
func (p *reader) strange() (of func(device string) string, err error) {
	_, written, err := p.written()
	if err != nil {
		return nil, err
	}
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
