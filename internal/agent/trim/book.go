package trim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/decide/trim"
)

const (
	extension = ".json"
	unready   = ".new"
)

// Book keeps what the node knows about the trims of its volumes, in a file for each.
type Book struct{ Files journal.Files }

// Load returns what is kept about a volume. A file that cannot be understood is as none: the volume is noted
// anew.
func (b Book) Load(volume string) (k trim.Kept, err error) {
	text, err := b.Files.Read(volume + extension)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return trim.Kept{}, nil
	case err != nil:
		return trim.Kept{}, fmt.Errorf("reading when volume %s was trimmed: %w", volume, err)
	}
	if err := json.Unmarshal(text, &k); err == nil {
		return k, nil
	}
	return trim.Kept{}, nil
}

// Store keeps k. After an error either this or what was kept before is kept.
func (b Book) Store(volume string, k trim.Kept) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	name := volume + extension
	for _, step := range []func() error{
		func() error { return b.Files.Write(name+unready, text) },
		func() error { return b.Files.Sync(name + unready) },
		func() error { return b.Files.Rename(name+unready, name) },
		b.Files.SyncDir,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("keeping when volume %s was trimmed: %w", volume, err)
		}
	}
	return nil
}

// Forget removes what is kept about all volumes but those.
func (b Book) Forget(but map[string]bool) error {
	names, err := b.Files.List()
	if err != nil {
		return fmt.Errorf("listing when volumes were trimmed: %w", err)
	}
	for _, name := range names {
		volume, _, _ := strings.Cut(name, ".")
		if v1alpha1.IsVolumeName(volume) && !but[volume] {
			err = errors.Join(err, b.Files.Remove(name))
		}
	}
	return err
}
