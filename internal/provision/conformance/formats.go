package conformance

import (
	"context"
	"sync"

	"berth.dev/berth/internal/provision"
)

// Formats counts the filesystems that are made.
type Formats struct {
	// Mkfs makes them; nil makes none.
	Mkfs provision.Mkfs

	mu   sync.Mutex
	made map[string]int
}

// Make makes a filesystem.
func (f *Formats) Make(ctx context.Context, v provision.Volume, filesystem, options string) error {
	f.mu.Lock()
	if f.made == nil {
		f.made = map[string]int{}
	}
	f.made[v.ID]++
	f.mu.Unlock()
	if f.Mkfs == nil {
		return nil
	}
	return f.Mkfs(ctx, v, filesystem, options)
}

// Of returns how many filesystems were made on a volume.
func (f *Formats) Of(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made[id]
}
