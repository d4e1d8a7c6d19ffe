package zpool

import (
	"fmt"
	"hash/crc32"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// readCopy reads the record of a copy, which says how long it is, and has a checksum.
func readCopy(r Row) (replica.Record, error) {
	text := set(r.copyFirst) + set(r.copyRest)
	if text == "" {
		return replica.Record{}, nil // a loss of power came before it was written
	}
	var length int
	var sum uint32
	parts := strings.SplitN(text, ":", 3)
	body := []byte(parts[len(parts)-1])
	if n, err := fmt.Sscanf(text, "%d:%08x:", &length, &sum); err != nil || n != 2 || len(body) != length || crc32.ChecksumIEEE(body) != sum {
		return replica.Record{}, fmt.Errorf("%w: the record of the copy is damaged: its length or sum is another", provision.ErrUnavailable)
	}
	return replica.Decode(body)
}

// copyProperties returns the properties that hold a record.
func copyProperties(n replica.Record) ([]string, error) {
	body, err := n.Encode()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%d:%08x:%s", len(body), crc32.ChecksumIEEE(body), body)
	first := text[:min(len(text), longestPart)]
	rest := orNone(text[len(first):])
	if len(rest) > longestPart {
		return nil, fmt.Errorf("%w: the record of the copy has %d bytes", provision.ErrNoSpace, len(text))
	}
	return []string{propCopyFirst + "=" + first, propCopyRest + "=" + rest}, nil
}
