package release

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"
)

// ChecksumError says that a binary does not match its publisher's checksum.
type ChecksumError struct {
	File string
	Want string
	Got  string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s does not match its checksum: it should have %s and has %s", e.File, e.Want, e.Got)
}

// ErrNoChecksum says that a binary has no checksum file.
var ErrNoChecksum = errors.New("there is no checksum file beside it (.sha256 or .sha512)")

// checksum is the publisher's checksum of a file.
type checksum struct {
	algorithm string
	value     string // lower-case hexadecimal
}

func (c checksum) String() string { return c.algorithm + ":" + c.value }

var algorithms = []struct {
	name string
	hash func() hash.Hash
}{{"sha512", sha512.New}, {"sha256", sha256.New}}

// readChecksum reads the checksum file of name, preferring the longer one. It
// returns [fs.ErrNotExist] if there is neither the file nor a checksum, and
// [ErrNoChecksum] if only the checksum is missing.
func readChecksum(ctx context.Context, o origin, name string) (checksum, error) {
	for _, a := range algorithms {
		f, err := o.open(ctx, name+"."+a.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return checksum{}, err
		}
		text, err := io.ReadAll(io.LimitReader(f, 4096))
		f.Close()
		if err != nil {
			return checksum{}, fmt.Errorf("reading %s: %w", o.of(name+"."+a.name), err)
		}
		c, err := parseChecksum(a.name, a.hash().Size(), string(text))
		if err != nil {
			return checksum{}, fmt.Errorf("reading %s: %w", o.of(name+"."+a.name), err)
		}
		return c, nil
	}
	f, err := o.open(ctx, name)
	if err != nil {
		return checksum{}, err
	}
	f.Close()
	return checksum{}, fmt.Errorf("%s: %w", o.of(name), ErrNoChecksum)
}

// parseChecksum accepts the bare number and the format of sha256sum, in which
// the file's name follows.
func parseChecksum(algorithm string, size int, text string) (checksum, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return checksum{}, errors.New("it is empty")
	}
	value := strings.ToLower(fields[0])
	if raw, err := hex.DecodeString(value); err != nil || len(raw) != size {
		return checksum{}, fmt.Errorf("%.20q is no %s checksum", fields[0], algorithm)
	}
	return checksum{algorithm: algorithm, value: value}, nil
}

func (c checksum) newHash() hash.Hash {
	for _, a := range algorithms {
		if a.name == c.algorithm {
			return a.hash()
		}
	}
	panic("unknown algorithm " + c.algorithm)
}
