package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Files are the effects of a Journal, in the order in which Store has them. Names have no directory.
type Files interface {
	Read(name string) ([]byte, error)
	List() ([]string, error)

	// Write replaces the contents of a file, which may be lost until Sync has returned.
	Write(name string, text []byte) error
	Sync(name string) error
	Rename(from, to string) error
	// Remove removes a file; no error if it is not there.
	Remove(name string) error
	// SyncDir makes the renames and removals before it durable.
	SyncDir() error
}

// Journal is the durable knowledge of one node. Calls for one volume come one at a time, but Load
// may come at any time.
type Journal struct{ Files Files }

const (
	extension = ".json"
	unready   = ".new"
)

// Load returns what is kept about a volume; false if nothing is.
func (j Journal) Load(volume string) (k Kept, found bool, err error) {
	if !v1alpha1.IsVolumeName(volume) {
		return k, false, fmt.Errorf("%w: %.64q is no volume id", provision.ErrInvalid, volume)
	}
	text, err := j.Files.Read(volume + extension)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{Volume: volume}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err == nil && k.Volume != volume {
		err = fmt.Errorf("it is about volume %.64q", k.Volume)
	}
	if err != nil {
		return Kept{}, false, fmt.Errorf("%w: reading what this node keeps about volume %s: %w", provision.ErrUnavailable, volume, err)
	}
	return k, true, nil
}

// Store keeps k. After an error either this or what was kept before is kept.
func (j Journal) Store(k Kept) error {
	if !v1alpha1.IsVolumeName(k.Volume) {
		return fmt.Errorf("%w: %.64q is no volume id", provision.ErrInvalid, k.Volume)
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	name := k.Volume + extension
	for _, step := range []func() error{
		func() error { return j.Files.Write(name+unready, text) },
		func() error { return j.Files.Sync(name + unready) },
		func() error { return j.Files.Rename(name+unready, name) },
		j.Files.SyncDir,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%w: keeping what this node knows about volume %s: %w", provision.ErrUnavailable, k.Volume, err)
		}
	}
	return nil
}

// Erase removes what is kept about a volume. After an error it may still be kept. The caller makes
// sure that nothing can need it any more: the node has left the volume, and the volume is deleted.
func (j Journal) Erase(volume string) error {
	if !v1alpha1.IsVolumeName(volume) {
		return fmt.Errorf("%w: %.64q is no volume id", provision.ErrInvalid, volume)
	}
	name := volume + extension
	for _, step := range []func() error{
		func() error { return j.Files.Remove(name + unready) },
		func() error { return j.Files.Remove(name) },
		j.Files.SyncDir,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("%w: forgetting what this node knows about volume %s: %w", provision.ErrUnavailable, volume, err)
		}
	}
	return nil
}

// Volumes returns the ids of the volumes that the journal knows.
func (j Journal) Volumes() ([]string, error) {
	names, err := j.Files.List()
	if err != nil {
		return nil, fmt.Errorf("%w: listing the volumes that this node knows: %w", provision.ErrUnavailable, err)
	}
	var out []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, extension); ok && v1alpha1.IsVolumeName(id) {
			out = append(out, id)
		}
	}
	return out, nil
}
