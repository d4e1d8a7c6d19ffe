package release

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"berth.dev/berth/lab/internal/artefact"
)

// Required are the binaries that a release must have. etcd is published elsewhere:
// Get also takes it if it is there.
var Required = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kube-proxy"}

// Etcd is the binary a release may lack.
const Etcd = "etcd"

// Get returns a directory with the binaries of the release at location, a
// directory or base URL, after comparing each with its checksum. The store keeps
// fetched binaries by their checksums, so the next Get reads only the checksums again.
func Get(ctx context.Context, store *artefact.Store, location string) (string, error) {
	o, err := newOrigin(location)
	if err != nil {
		return "", err
	}
	sums, err := checksums(ctx, o)
	if err != nil {
		return "", fmt.Errorf("looking at the release: %w", err)
	}
	recipe := artefact.Recipe{Name: "release", Make: func(ctx context.Context, dir string, log io.Writer) error {
		for name, sum := range sums {
			fmt.Fprintln(log, "fetching", o.of(name), sum)
			if err := fetch(ctx, o, name, filepath.Join(dir, name), sum); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, name := range append(Required, Etcd) {
		recipe.Key = append(recipe.Key, name, sums[name].String())
	}
	return store.Get(ctx, recipe)
}

func checksums(ctx context.Context, o origin) (map[string]checksum, error) {
	sums := map[string]checksum{}
	for _, name := range Required {
		sum, err := readChecksum(ctx, o, name)
		if err != nil {
			return nil, err
		}
		sums[name] = sum
	}
	sum, err := readChecksum(ctx, o, Etcd)
	switch {
	case err == nil:
		sums[Etcd] = sum
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return sums, nil
}

// fetch writes a file and compares its checksum. If it does not match, the caller removes
// the directory.
func fetch(ctx context.Context, o origin, name, path string, want checksum) error {
	in, err := o.open(ctx, name)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", name, err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", name, err)
	}
	h := want.newHash()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("fetching %s: %w", name, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.value {
		return &ChecksumError{File: o.of(name), Want: want.String(), Got: got}
	}
	return nil
}
