package gpt

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID as it is on the disk: its first three groups are little-endian.
type GUID [16]byte

// groups are the bytes of a GUID in the order in which they are written as text.
var groups = [...][]int{{3, 2, 1, 0}, {5, 4}, {7, 6}, {8, 9}, {10, 11, 12, 13, 14, 15}}

// ParseGUID reads the usual form: 00112233-4455-6677-8899-AABBCCDDEEFF.
func ParseGUID(text string) (g GUID, err error) {
	parts := strings.Split(text, "-")
	if len(parts) != len(groups) {
		return GUID{}, fmt.Errorf("%q is no GUID", text)
	}
	for i, group := range groups {
		b, err := hex.DecodeString(parts[i])
		if err != nil || len(b) != len(group) {
			return GUID{}, fmt.Errorf("%q is no GUID", text)
		}
		for j, at := range group {
			g[at] = b[j]
		}
	}
	return g, nil
}

// String returns the usual form.
func (g GUID) String() string {
	parts := make([]string, 0, len(groups))
	for _, group := range groups {
		var b strings.Builder
		for _, at := range group {
			fmt.Fprintf(&b, "%02X", g[at])
		}
		parts = append(parts, b.String())
	}
	return strings.Join(parts, "-")
}

// Random makes a random GUID of 16 random bytes.
func Random(random [16]byte) GUID {
	g := GUID(random)
	g[7] = g[7]&0x0f | 0x40 // version 4
	g[8] = g[8]&0x3f | 0x80
	return g
}

// disk returns the GUID of the disk whose one partition has the GUID g. It is another GUID,
// which follows from g.
func (g GUID) disk() GUID {
	g[15] = ^g[15]
	return g
}
