package trial

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Files is the Data of volumes that are trees: one file for each seed, whose name says seed and bytes.
type Files struct{ Mounter mount.Mounter }

var _ Data = Files{}

// Fill implements Data. What it wrote is on the disk when it returns.
func (f Files) Fill(ctx context.Context, v provision.Volume, seed uint64, bytes int64) error {
	return f.mounted(ctx, v, func(dir string) error {
		file, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%d.%d", seed, bytes)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, io.LimitReader(source(ctx, seed), bytes))
		return errors.Join(err, file.Sync(), file.Close())
	})
}

// Compare implements Data.
func (f Files) Compare(ctx context.Context, v provision.Volume, seeds ...uint64) (total int64, err error) {
	err = f.mounted(ctx, v, func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		missing := slices.Clone(seeds)
		for _, e := range entries {
			var seed uint64
			var wrote int64
			_, err := fmt.Sscanf(e.Name(), "%d.%d", &seed, &wrote)
			i := slices.Index(missing, seed)
			if err != nil || i < 0 {
				return fmt.Errorf("file %q is none that was written", e.Name())
			}
			bytes, err := compare(ctx, filepath.Join(dir, e.Name()), seed)
			total += bytes
			if err != nil {
				return err
			}
			if bytes != wrote {
				return fmt.Errorf("file %s has %d bytes", e.Name(), bytes)
			}
			missing = slices.Delete(missing, i, i+1)
		}
		if len(missing) > 0 {
			return fmt.Errorf("the files of seeds %v are missing", missing)
		}
		return nil
	})
	return total, err
}

// mounted runs do where a volume is mounted for that time.
func (f Files) mounted(ctx context.Context, v provision.Volume, do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "berth-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	if err := f.Mounter.Mount(ctx, mount.Request{Content: v.Content, Target: dir, Filesystem: v.Content.Tree, Options: []string{"noatime", "nodev", "nosuid"}}); err != nil {
		return fmt.Errorf("mounting volume %s: %w", v.ID, err)
	}
	defer func() { err = errors.Join(err, f.Mounter.Unmount(context.WithoutCancel(ctx), dir)) }()
	return do(dir)
}

// compare returns how many bytes a file has, and an error at the first that is not the seed's.
func compare(ctx context.Context, path string, seed uint64) (at int64, err error) {
	file, err := os.Open(path) //nolint:gosec // in the volume of the trial
	if err != nil {
		return 0, err
	}
	defer file.Close()
	have, want := bufio.NewReaderSize(file, block), bufio.NewReaderSize(source(ctx, seed), block)
	for {
		a, err := have.ReadByte()
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		if b, err := want.ReadByte(); err != nil || a != b {
			return at, errors.Join(err, fmt.Errorf("byte %d of file %s is not what was written", at, filepath.Base(path)))
		}
		at++
	}
}

const block = 1 << 20

// source is an endless stream of bytes that follow from a seed and cannot be packed. It ends when ctx does.
func source(ctx context.Context, seed uint64) io.Reader {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	return &random{ctx: ctx, bytes: rand.NewChaCha8(key)}
}

type random struct {
	ctx   context.Context //nolint:containedctx // of one call
	bytes *rand.ChaCha8
}

// Read implements io.Reader.
func (r *random) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.bytes.Read(b)
}
