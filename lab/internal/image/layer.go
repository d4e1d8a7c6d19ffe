package image

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// writeTop writes the layer with the specification's own files. It also writes their
// parent directories, once each and before their contents.
func (s Spec) writeTop(w io.Writer) error {
	tw := tar.NewWriter(w)
	made := map[string]bool{"/": true}
	entries := s.topPaths()
	slices.Sort(entries)
	for _, p := range entries {
		if err := writeParents(tw, p, made); err != nil {
			return err
		}
		if err := s.writeEntry(tw, p); err != nil {
			return fmt.Errorf("adding %s: %w", p, err)
		}
	}
	return tw.Close()
}

func writeParents(tw *tar.Writer, p string, made map[string]bool) error {
	dir := path.Dir(p)
	if made[dir] {
		return nil
	}
	if err := writeParents(tw, dir, made); err != nil {
		return err
	}
	made[dir] = true
	return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: inTar(dir) + "/", Mode: 0o755})
}

func (s Spec) writeEntry(tw *tar.Writer, p string) error {
	for _, l := range s.Links {
		if l.Path == p {
			return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: inTar(p), Linkname: l.Target, Mode: 0o777})
		}
	}
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Path == p })
	file, err := os.Open(s.Files[i].Source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", s.Files[i].Source)
	}
	// The header has neither time nor owner nor mode of the source: they differ from
	// machine to machine and would change the digest.
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: inTar(p), Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(tw, file)
	return err
}

func inTar(p string) string { return strings.TrimPrefix(p, "/") }
