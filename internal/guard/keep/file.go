package keep

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// File is a Store in a file of a directory that is empty after a boot, such as one below /run. The
// file is replaced as a whole, so a guard that dies leaves the old state or the new one.
type File string

// Load implements Store. A file that cannot be read is an error: the guard does not know then what
// this node has open.
func (f File) Load() (State, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return State{}, nil
	}
	var s State
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return State{}, fmt.Errorf("reading what the guard before this one knew (restart the machine if this does not end): %w", err)
	}
	return s, nil
}

// Save implements Store.
func (f File) Save(s State) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	next := string(f) + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, string(f))
}
