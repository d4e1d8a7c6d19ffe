package conformance

import (
	"context"
	"path"
	"sync"
)

// Formats counts the filesystems that are made.
type Formats struct {
	// Mkfs makes them; nil makes none.
	Mkfs func(ctx context.Context, device, filesystem, options string) error

	mu   sync.Mutex
	made map[string]int
}

// Make makes a filesystem.
func (f *Formats) Make(ctx context.Context, device, filesystem, options string) error {
	f.mu.Lock()
	if f.made == nil {
		f.made = map[string]int{}
	}
	f.made[path.Base(device)]++
	f.mu.Unlock()
	if f.Mkfs == nil {
		return nil
	}
	return f.Mkfs(ctx, device, filesystem, options)
}

// Of is how many were made on a volume whose device is named after it.
func (f *Formats) Of(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made[id]
}
