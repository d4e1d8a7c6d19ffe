package sendstream

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
)

// A token is "1-CHECKSUM-LENGTH-DATA", all but the version in hexadecimal digits. The data is a list
// of names and values as ZFS keeps it in memory, packed by zlib. LENGTH is how long the list is.
const (
	maxToken = 4 << 10
	maxList  = 4 << 10
)

// Token is the place at which a stream goes on.
type Token struct {
	// To is the guid of the snapshot that the stream makes, and From that of its base; 0 for none.
	To, From uint64
	// Name of the snapshot at its sender.
	Name string
}

// CheckToken returns ErrInvalid unless a token names just these snapshots, and nothing else that would
// change what is sent.
func CheckToken(token string, w Token) error {
	t, err := ReadToken(token)
	switch {
	case err != nil:
		return err
	case t.To != w.To || t.From != w.From:
		return fmt.Errorf("%w: the token is of snapshot %d since %d, not of %d since %d", provision.ErrInvalid, t.To, t.From, w.To, w.From)
	case pool(t.Name) != pool(w.Name):
		return fmt.Errorf("%w: the token is of a snapshot in zpool %.80q", provision.ErrInvalid, pool(t.Name))
	}
	return nil
}

// pool returns the name of the zpool of a snapshot. ZFS looks there for the guid.
func pool(name string) string {
	name, _, _ = strings.Cut(name, "/")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// ReadToken reads a token. The error is ErrInvalid.
func ReadToken(token string) (t Token, err error) {
	list, why := unpack(token)
	if why != "" {
		return t, fmt.Errorf("%w: %s in token %.40q", provision.ErrInvalid, why, token)
	}
	values, ok := readList(list)
	if !ok {
		return t, fmt.Errorf("%w: no list of names and values is in token %.40q", provision.ErrInvalid, token)
	}
	for name, v := range values {
		if known, ok := tokenFields[name]; !ok || known != v.kind {
			return t, fmt.Errorf("%w: a field %.40q is in token %.40q", provision.ErrInvalid, name, token)
		}
	}
	for _, name := range []string{"object", "offset", "bytes", "toguid", "toname"} {
		if _, ok := values[name]; !ok {
			return t, fmt.Errorf("%w: no %s is in token %.40q", provision.ErrInvalid, name, token)
		}
	}
	return Token{To: values["toguid"].number, From: values["fromguid"].number, Name: values["toname"].text}, nil
}

// unpack returns the list in a token, or why there is none.
func unpack(token string) (list []byte, why string) {
	parts := strings.Split(token, "-")
	if len(token) > maxToken || len(parts) != 4 || parts[0] != "1" || strings.ToLower(token) != token {
		return nil, "there are no four parts of a known version"
	}
	length, err := strconv.ParseUint(parts[2], 16, 32)
	packed, hexErr := hex.DecodeString(parts[3])
	if _, sumErr := strconv.ParseUint(parts[1], 16, 64); err != nil || hexErr != nil || sumErr != nil || length > maxList {
		return nil, "there is no number where one must be"
	}
	source := bytes.NewReader(packed)
	z, err := zlib.NewReader(source)
	if err != nil {
		return nil, "the data cannot be unpacked"
	}
	list, err = io.ReadAll(io.LimitReader(z, maxList+1))
	if err != nil || uint64(len(list)) != length || source.Len() > 0 {
		return nil, "the data does not have the length that the token says"
	}
	return list, ""
}

// The types of values in a list.
const (
	typeFlag   = 1
	typeNumber = 8
	typeText   = 9
)

// tokenFields are the fields that a token of Berth's own streams may have, and their types.
var tokenFields = map[string]uint32{
	"object": typeNumber, "offset": typeNumber, "bytes": typeNumber, "toguid": typeNumber, "fromguid": typeNumber, "toname": typeText,
	"largeblockok": typeFlag, "embedok": typeFlag, "compressok": typeFlag,
}

// value of a list.
type value struct {
	kind   uint32
	number uint64
	text   string
}

// A list begins with four bytes that say in which form and byte order it is, a version and flags.
// Each pair has its length, that of its name, a reserved number, how many elements and of which type
// the value is, the name with a zero byte, and the value, which begins at a multiple of 8 bytes. A
// length of 0 ends the list.
const (
	listHead = 12
	pairHead = 16
)

// readList reads a list. It refuses a name that comes twice: which one counts would be a guess.
func readList(list []byte) (map[string]value, bool) {
	if len(list) < listHead || list[0] != 0 || list[1] > 1 {
		return nil, false
	}
	var order binary.ByteOrder = binary.BigEndian
	if list[1] == 1 {
		order = binary.LittleEndian
	}
	values, rest := map[string]value{}, list[listHead:]
	for {
		if len(rest) < 4 {
			return nil, false
		}
		size := order.Uint32(rest)
		if size == 0 {
			return values, len(rest) == 4
		}
		if size < pairHead || size%8 != 0 || uint64(size) > uint64(len(rest)) {
			return nil, false
		}
		name, v, ok := readPair(order, rest[:size])
		if _, twice := values[name]; !ok || twice {
			return nil, false
		}
		values[name], rest = v, rest[size:]
	}
}

func readPair(order binary.ByteOrder, pair []byte) (name string, v value, ok bool) {
	nameSize := int(order.Uint16(pair[4:]))
	v.kind = order.Uint32(pair[12:])
	start := (pairHead + nameSize + 7) &^ 7
	if nameSize < 2 || start > len(pair) {
		return "", v, false
	}
	name, ok = ended(pair[pairHead : pairHead+nameSize])
	data := pair[start:]
	elements := order.Uint32(pair[8:])
	switch {
	case !ok:
	case v.kind == typeFlag:
		ok = len(data) == 0 && elements == 0
	case v.kind == typeNumber && len(data) == 8 && elements == 1:
		v.number = order.Uint64(data)
	case v.kind == typeText && elements == 1:
		text, _, _ := bytes.Cut(data, []byte{0})
		v.text, ok = string(text), len(text) < len(data) && len(data)-len(text) <= 8
	default:
		ok = false
	}
	return name, v, ok
}

// ended returns a text that ends in its only zero byte.
func ended(text []byte) (string, bool) {
	i := bytes.IndexByte(text, 0)
	return string(text[:max(i, 0)]), i == len(text)-1
}
