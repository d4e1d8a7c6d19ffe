package artefact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"berth.dev/berth/lab/internal/progress"
)

// Recipe says how to make an artefact.
type Recipe struct {
	Name string   // for people and paths: lower-case letters, digits, dots and dashes
	Key  []string // everything that determines the content
	// Make fills dir, which is empty, and tells log what it does. It is called
	// by one process at a time and its leftovers are removed if it fails.
	Make func(ctx context.Context, dir string, log io.Writer) error
}

// Store keeps artefacts below a directory. Several stores, also in several
// processes, may share the directory.
type Store struct {
	Dir    string
	Report progress.Reporter // nil discards the reports
}

// BuildError says that an artefact could not be made and where its log is.
type BuildError struct {
	Name string
	Log  string
	Err  error
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("making %s: %v (log: %s)", e.Name, e.Err, e.Log)
}

func (e *BuildError) Unwrap() error { return e.Err }

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// Address returns the name of the artefact's directory in the store.
func (r Recipe) Address() string {
	h := sha256.New()
	for _, k := range r.Key {
		// The length comes first: without it {"ab", "c"} and {"a", "bc"} would be the same.
		fmt.Fprintf(h, "%d:%s", len(k), k)
	}
	return r.Name + "-" + hex.EncodeToString(h.Sum(nil))[:20]
}

// Get returns the directory of an artefact and makes it first if it is not in
// the store. While another process makes the same artefact, Get waits for it.
func (s *Store) Get(ctx context.Context, r Recipe) (string, error) {
	if !validName.MatchString(r.Name) {
		return "", fmt.Errorf("artefact name %q is not made of lower-case letters, digits, dots and dashes", r.Name)
	}
	dir := filepath.Join(s.Dir, r.Address())
	if err := touch(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	step := s.reporter().Step(r.Name)
	err := s.makeOnce(ctx, r, dir, step)
	step.Done(err)
	if err != nil {
		return "", err
	}
	return dir, nil
}

// LogPath returns where the log of making r is written.
func (s *Store) LogPath(r Recipe) string {
	return filepath.Join(s.Dir, "log", r.Address()+".log")
}

func (s *Store) makeOnce(ctx context.Context, r Recipe, dir string, step progress.Step) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, "log"), 0o755); err != nil {
		return fmt.Errorf("creating artefact store: %w", err)
	}
	unlock, err := Lock(ctx, filepath.Join(s.Dir, "log", r.Address()+".lock"), func() {
		step.Note("waiting for another lab command that makes it")
	})
	if err != nil {
		return fmt.Errorf("waiting to make %s: %w", r.Name, err)
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	log, err := os.Create(s.LogPath(r))
	if err != nil {
		return fmt.Errorf("creating log of %s: %w", r.Name, err)
	}
	defer log.Close()
	step.Note("log: %s", log.Name())
	if err := makeIn(ctx, r, dir, log); err != nil {
		fmt.Fprintf(log, "\nfailed: %v\n", err)
		return &BuildError{Name: r.Name, Log: log.Name(), Err: err}
	}
	return nil
}

// makeIn makes the artefact beside its final place and moves it there. The caller
// holds the lock, so no process is working on the leftovers of an earlier crash.
func makeIn(ctx context.Context, r Recipe, dir string, log io.Writer) error {
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("removing leftovers: %w", err)
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return err
	}
	err := r.Make(ctx, part, log)
	if err == nil {
		// Make may have unpacked an archive that gave the directory another time.
		err = touch(part)
	}
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return nil
}

func (s *Store) reporter() progress.Reporter {
	if s.Report == nil {
		return progress.Discard
	}
	return s.Report
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// touch marks an artefact as used, so that its time shows whether it is stale. It returns
// fs.ErrNotExist for one that does not exist. A read-only cache still serves.
func touch(dir string) error {
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("marking %s as used: %w", filepath.Base(dir), err)
	}
	return nil
}
