package artefact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Hold keeps the artefacts that are taken from the store from now on, as long as there is
// a file at path: a cluster opens its artefacts again after a long time. Another call for
// the same path begins anew.
func (s *Store) Hold(path string) error {
	sum := sha256.Sum256([]byte(path))
	file := filepath.Join(s.holds(), hex.EncodeToString(sum[:10]))
	if err := os.MkdirAll(s.holds(), 0o755); err != nil {
		return fmt.Errorf("creating artefact store: %w", err)
	}
	part := file + ".part"
	if err := os.WriteFile(part, []byte(path), 0o644); err != nil {
		return fmt.Errorf("keeping the artefacts of %s: %w", path, err)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("keeping the artefacts of %s: %w", path, err)
	}
	return nil
}

func (s *Store) holds() string { return filepath.Join(s.Dir, "holds") }

// Held returns the file of the oldest hold and the time since which it keeps artefacts; no
// file if there is no hold. It removes the holds of files that are gone.
func (s *Store) Held() (path string, since time.Time, err error) {
	entries, err := os.ReadDir(s.holds())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, fmt.Errorf("finding who needs artefacts: %w", err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != "" {
			continue // being written, since now
		}
		holder, begun, err := s.hold(filepath.Join(s.holds(), e.Name()))
		if err != nil {
			return "", time.Time{}, fmt.Errorf("finding who needs artefacts: %w", err)
		}
		if holder != "" && (path == "" || begun.Before(since)) {
			path, since = holder, begun
		}
	}
	return path, since, nil
}

// hold reads a hold, or removes it if nothing needs it any more.
func (s *Store) hold(file string) (path string, since time.Time, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", time.Time{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", time.Time{}, err
	}
	if _, err := os.Lstat(string(text)); errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, os.Remove(file)
	}
	return string(text), info.ModTime(), nil
}
