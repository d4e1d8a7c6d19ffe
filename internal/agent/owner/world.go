package owner

import (
	"context"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// World is all that an Owner asks and does, apart from the steps that the kubelet's calls hand it, and from
// the effects on its Medium: 12 to 17 are the shared disk's (shared.Disks: Look, Attach, Detach, Register,
// Reserve and Flush), and 18 to 29 the copy's (Pools).
// An error leaves open whether an effect has happened.
type World interface {
	// Now is the time of day.
	Now() time.Time
	// FreshID is a random id for a new epoch.
	FreshID() string

	// 1. Load returns what the node keeps about a volume; false if nothing. Volumes lists those.
	Load(volume string) (journal.Kept, bool, error)
	Volumes() ([]string, error)
	// 2. Store keeps it durably, and Erase removes it.
	Store(k journal.Kept) error
	Erase(volume string) error
	// 3. Mounts returns the paths at which a device is mounted or bound.
	Mounts(content provision.Content) ([]string, error)
	// 4. Unmount takes a mount off a path, without force. A container that begins anew in a pod of that path
	// finds nothing that it can write to.
	Unmount(ctx context.Context, path string) error

	// 5. Read reads a Volume from the API server, uncached.
	Read(ctx context.Context, volume string) (*v1alpha1.Volume, error)
	// 6. Replace writes the status of a Volume, if it still is the one that was read; else the
	// error is the API's conflict.
	Replace(ctx context.Context, v *v1alpha1.Volume) error
	// 7. Ask asks other nodes about their copies. One that does not answer is not in the result.
	Ask(ctx context.Context, volume string, nodes []string) []ownership.Peer

	// 8. Standing returns how the guard and the administrator see this node.
	Standing(ctx context.Context) (Standing, error)
	// 9. OpenEpoch registers an epoch at the guard, which may refuse it; reserved says that the disk itself
	// keeps late writes of the epoch out. 10. CloseEpoch ends it, if
	// nothing on the node holds the volume, or else the error is ErrInUse; one that the guard does not know has ended.
	OpenEpoch(ctx context.Context, volume string, e lineage.Epoch, content provision.Content, reserved bool) error
	CloseEpoch(ctx context.Context, volume string, e lineage.Epoch) error
	// 11. AllClosed gives the guard the word that every epoch of the node is closed.
	AllClosed(ctx context.Context) error

	// 30. There returns those of the paths of pods that the kubelet has not unpublished.
	There(paths []string) []string
	// 31. Begun returns those of the paths whose pods have begun, or are not known to the API server any more.
	Begun(ctx context.Context, paths []string) ([]string, error)
	// 32. Uncover takes off a path what Unmount, or the guard, put there.
	Uncover(ctx context.Context, path string) error
	// 33. ShutDowns returns the paths at which a filesystem is mounted that has shut itself down. A look that fails finds
	// none.
	ShutDowns() []string
}

// Standing is how a node stands towards the others.
type Standing struct {
	// SinceRenewal is the time since the guard renewed the node's lease.
	SinceRenewal time.Duration
	// Fenced: the guard lets no epoch begin until every one of this node is closed.
	Fenced bool
	// OutOfService: an administrator has declared this node dead.
	OutOfService bool
}
