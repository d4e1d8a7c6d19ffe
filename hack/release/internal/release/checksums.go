package release

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sums is the file with the checksums, as sha256sum writes and checks it.
const sums = "SHA256SUMS"

// sum writes the checksums of all files below a directory, in the order of their names.
func sum(dir string) error {
	var lines []byte
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		hash, err := checksum(root, name)
		lines = fmt.Appendf(lines, "%s  %s\n", hash, name)
		return err
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sums), lines, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the checksums of the release: %w", err)
	}
	return nil
}

func checksum(root fs.FS, name string) (string, error) {
	file, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), err
}
