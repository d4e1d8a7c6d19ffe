package zfs

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// findings holds findings about zpools that classes ask for, by name. They serve only to
// say how a wish stands: before the manager acts, it finds them out anew.
type findings struct {
	mu sync.Mutex
	of map[string]zpool.Finding
	// searching is set while a search for zpools has no answer.
	searching bool
}

func (f *findings) get(name string) zpool.Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[name]
}

// edit changes a finding.
func (f *findings) edit(name string, change func(*zpool.Finding)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string]zpool.Finding{}
	}
	now := f.of[name]
	change(&now)
	f.of[name] = now
}

// forget drops a finding, so that it is found out anew. It keeps Seen.
func (f *findings) forget(name string) {
	f.edit(name, func(now *zpool.Finding) { *now = zpool.Finding{Seen: now.Seen} })
}

func (f *findings) see(name string) { f.edit(name, func(now *zpool.Finding) { now.Seen = true }) }

// begin says whether a search may begin: none begins while another has no answer.
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

// readMark asks a zpool that is imported for its mark. The caller holds the zpool's lock.
func (m *manager) readMark(ctx context.Context, name string) error {
	out, err := m.askOf(ctx, name, m.poolTool.MarkCommand(name))
	if err != nil {
		return fmt.Errorf("reading who made zpool %s: %w", name, err)
	}
	m.findings.edit(name, func(f *zpool.Finding) { f.Mark, f.Marked = strings.TrimSpace(string(out)), m.config.Now() })
	return nil
}

// search looks on disks for zpools of a name that are not imported.
func (m *manager) search(ctx context.Context, name string, nodes []string) error {
	if !m.findings.begin() {
		return fmt.Errorf("%w: an earlier search of the disks for zpools has no answer yet", provision.ErrUnavailable)
	}
	out, err := m.ask(ctx, m.poolTool.FindCommand(m.aliases(nodes)), m.findings.end)
	if err != nil {
		return fmt.Errorf("searching the disks for zpool %s: %w", name, err)
	}
	m.findings.edit(name, func(f *zpool.Finding) {
		f.OnDisks, f.On, f.Searched = nil, nodes, m.config.Now()
		for _, z := range parseFound(string(out)) {
			if z.Name == name {
				f.OnDisks = append(f.OnDisks, z)
			}
		}
	})
	return nil
}

func (m *manager) aliases(nodes []string) []string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = m.config.Devices.Alias(node)
	}
	return names
}

// parseFound reads the list of zpools that can be imported, as ZFS prints it. Until version
// 2.3 there is only this form: a paragraph for each zpool, with a line for each word that
// matters here. A line that continues the one before it begins with a tab.
func parseFound(printed string) (zpools []zpool.Found) {
	for line := range strings.Lines(printed) {
		word, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "\t") {
			continue
		}
		switch word {
		case "pool":
			zpools = append(zpools, zpool.Found{Name: value})
		case "id", "comment":
			if len(zpools) == 0 {
				continue
			}
			last := &zpools[len(zpools)-1]
			if word == "id" {
				last.ID = value
			} else {
				last.Mark = value
			}
		}
	}
	return zpools
}
