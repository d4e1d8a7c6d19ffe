package btrfs

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// label matches the labels of filesystems that are pools.
var label = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// want notes that a class names a pool. It stays noted until the process ends.
func (p *store) want(pool provision.PoolRef) {
	if pool.Type != provision.Btrfs {
		return
	}
	p.engine.Lock()
	defer p.engine.Unlock()
	p.wanted[strings.TrimPrefix(pool.Name, provision.BtrfsPrefix)] = true
}

// marked returns the labels of the filesystems that bear a mark of Berth's. The kernel shows it
// without a look into the filesystem.
func marked(mounted map[string]string) map[string]bool {
	labels := map[string]bool{}
	for fsid, name := range mounted {
		if ours(fsid, name) || kernel.Marked(fsid) {
			labels[name] = true
		}
	}
	return labels
}

// Discover asks the kernel which filesystems are mounted. Pools are those whose label a class
// names, or a filesystem with a mark of Berth's has; no other is opened. One that goes and holds
// volumes stays known, so that its volumes are not taken for deleted.
func (b backend) Discover(context.Context) error {
	mounted, err := b.config.Mounted()
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	bears, news := marked(mounted), false
	b.engine.Lock()
	defer b.engine.Unlock()
	for fsid, name := range mounted {
		u := b.engine.Units()[fsid]
		switch {
		case !label.MatchString(name) || !bears[name] && !b.wanted[name]:
			delete(mounted, fsid)
			continue
		case u == nil:
			u = &facts{fsid: fsid}
			b.engine.Put(fsid, u)
		case u.label == name && !u.missing:
			continue
		}
		u.label, u.missing, u.Read, news = name, false, time.Time{}, true // others may have changed it
		b.engine.Touch(u)
	}
	for fsid, u := range b.engine.Units() {
		if _, there := mounted[fsid]; there {
			continue
		}
		if len(u.volumes)+len(u.snapshots) == 0 {
			b.engine.Drop(fsid)
			news = true
		} else if !u.missing {
			u.missing, news = true, true
		}
	}
	if news {
		b.engine.Changed.Set()
	}
	return nil
}
