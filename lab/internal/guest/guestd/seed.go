package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"berth.dev/berth/lab/internal/guest/wire"
)

// readSeed reads the plan and unpacks the files beside it below root. It replaces
// files and never writes them in place: programs may be running.
func readSeed(r io.Reader, root string) (wire.Plan, error) {
	var plan wire.Plan
	archive := tar.NewReader(r)
	head, err := archive.Next()
	if err != nil {
		return plan, fmt.Errorf("reading the seed: %w", err)
	}
	if head.Name != wire.PlanFile {
		return plan, fmt.Errorf("the seed begins with %q, want %q", head.Name, wire.PlanFile)
	}
	if err := json.NewDecoder(archive).Decode(&plan); err != nil {
		return plan, fmt.Errorf("reading the plan: %w", err)
	}
	if err := plan.Validate(); err != nil {
		return plan, fmt.Errorf("checking the plan: %w", err)
	}
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return plan, nil
		}
		if err != nil {
			return plan, fmt.Errorf("reading the seed: %w", err)
		}
		if err := unpack(archive, head, root); err != nil {
			return plan, fmt.Errorf("unpacking %s: %w", head.Name, err)
		}
	}
}

func unpack(r io.Reader, head *tar.Header, root string) error {
	if !filepath.IsLocal(head.Name) {
		return errors.New("the path leads out of the root")
	}
	path := filepath.Join(root, head.Name)
	switch head.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, head.FileInfo().Mode().Perm())
	case tar.TypeReg:
		return replaceFile(r, path, head.FileInfo().Mode().Perm())
	default:
		return fmt.Errorf("unknown kind of entry %q", head.Typeflag)
	}
}

func replaceFile(r io.Reader, path string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next := path + ".seed"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(mode); err != nil { // neither the umask nor an old leftover decides
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(next, path)
}
