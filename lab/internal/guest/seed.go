package guest

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/guest/wire"
)

// write writes the seed as the tar archive guestd reads.
func (s Seed) write(w io.Writer) error {
	plan, err := json.Marshal(s.Plan)
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	archive := tar.NewWriter(w)
	files := slices.Concat([]File{{Path: "/" + wire.PlanFile, Mode: 0o600, Data: plan}}, s.Files)
	for _, f := range files {
		if err := f.write(archive); err != nil {
			return fmt.Errorf("adding %s to the seed: %w", f.Path, err)
		}
	}
	return archive.Close()
}

func (f File) write(archive *tar.Writer) error {
	head := &tar.Header{
		Name: strings.TrimPrefix(f.Path, "/"), Typeflag: tar.TypeReg,
		Mode: int64(f.Mode), Size: int64(len(f.Data)),
	}
	if f.Source == "" {
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		_, err := archive.Write(f.Data)
		return err
	}
	source, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.Source)
	}
	head.Size = info.Size()
	if err := archive.WriteHeader(head); err != nil {
		return err
	}
	_, err = io.Copy(archive, source)
	return err
}
