package zfs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"berth.dev/berth/internal/provision"
)

// findings are what was found out about zpools that classes ask for, by name. They are
// for saying how a wish stands: what is acted upon is found out anew.
type findings struct {
	mu sync.Mutex
	of map[string]finding
	// searching is set while a search for zpools has no answer.
	searching bool
}

type finding struct {
	// mark of the zpool that is imported, and when it was read; zero if it was not.
	mark   string
	marked time.Time
	// onDisks are the zpools of that name that are not imported, on which disks they were
	// searched for and when; zero if they were not.
	onDisks  []found
	on       []string
	searched time.Time
	// seen says that the zpool was imported when this process looked at some time.
	seen bool
}

// found is a zpool that is not imported.
type found struct{ name, id, mark string }

func (f *findings) get(name string) finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[name]
}

// edit changes a finding.
func (f *findings) edit(name string, change func(*finding)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string]finding{}
	}
	now := f.of[name]
	change(&now)
	f.of[name] = now
}

// forget forgets what is to be found out anew.
func (f *findings) forget(name string) {
	f.edit(name, func(now *finding) { *now = finding{seen: now.seen} })
}

func (f *findings) see(name string) { f.edit(name, func(now *finding) { now.seen = true }) }

// begin says whether a search may begin: one that hangs is not joined by others.
func (f *findings) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := !f.searching
	f.searching = true
	return began
}

func (f *findings) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.searching = false
}

// readMark asks a zpool that is imported for its mark, for who holds its lock.
func (p *Provisioner) readMark(ctx context.Context, name string) error {
	out, err := p.askOf(ctx, name, p.config.markCommand(name))
	if err != nil {
		return fmt.Errorf("reading who made zpool %s: %w", name, err)
	}
	p.findings.edit(name, func(f *finding) { f.mark, f.marked = strings.TrimSpace(string(out)), p.config.Now() })
	return nil
}

// search looks on disks for zpools of a name that are not imported.
func (p *Provisioner) search(ctx context.Context, name string, nodes []string) error {
	if !p.findings.begin() {
		return fmt.Errorf("%w: an earlier search of the disks for zpools has no answer yet", provision.ErrUnavailable)
	}
	out, err := p.ask(ctx, p.config.findCommand(p.aliases(nodes)), p.findings.end)
	if err != nil {
		return fmt.Errorf("searching the disks for zpool %s: %w", name, err)
	}
	p.findings.edit(name, func(f *finding) {
		f.onDisks, f.on, f.searched = nil, nodes, p.config.Now()
		for _, z := range parseFound(string(out)) {
			if z.name == name {
				f.onDisks = append(f.onDisks, z)
			}
		}
	})
	return nil
}

func (p *Provisioner) aliases(nodes []string) []string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = p.config.Devices.Alias(node)
	}
	return names
}

// parseFound reads what ZFS prints of zpools that can be imported. Until version 2.3 it
// has this form alone: a paragraph for each, with a line for each word that matters here.
// What goes on in the next line begins with a tab.
func parseFound(printed string) (zpools []found) {
	for line := range strings.Lines(printed) {
		word, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "\t") {
			continue
		}
		switch word {
		case "pool":
			zpools = append(zpools, found{name: value})
		case "id", "comment":
			if len(zpools) == 0 {
				continue
			}
			last := &zpools[len(zpools)-1]
			if word == "id" {
				last.id = value
			} else {
				last.mark = value
			}
		}
	}
	return zpools
}
