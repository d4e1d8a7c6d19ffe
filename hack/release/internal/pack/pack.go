package pack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// File is a regular file of an archive.
type File struct {
	// Name is a clean path without a leading slash.
	Name string
	// Mode has the permissions only.
	Mode fs.FileMode
	Data []byte
}

// Tar returns a tar archive of the files, in the order of their names, with their directories.
func Tar(files []File) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	seen := map[string]bool{".": true}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) }) {
		if !fs.ValidPath(f.Name) || seen[f.Name] {
			return nil, fmt.Errorf("packing %q: a name must be a clean relative path, and in an archive once", f.Name)
		}
		if err := errors.Join(directories(w, f.Name, seen), file(w, f)); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
		seen[f.Name] = true
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}

// directories writes those directories above a file that the archive does not have yet.
func directories(w *tar.Writer, name string, seen map[string]bool) error {
	for i := range strings.Count(name, "/") {
		dir := strings.Join(strings.Split(name, "/")[:i+1], "/")
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	return nil
}

func file(w *tar.Writer, f File) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data))}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(f.Data)
	return err
}

// TarGzip returns a compressed tar archive of the files.
func TarGzip(files []File) ([]byte, error) {
	plain, err := Tar(files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out) // its header has no time and no name
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return out.Bytes(), nil
}

// Below returns the files with a directory before their names.
func Below(dir string, files []File) []File {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].Name = path.Join(dir, moved[i].Name)
	}
	return moved
}
