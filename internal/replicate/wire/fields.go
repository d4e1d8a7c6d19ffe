package wire

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"

	"berth.dev/berth/internal/lineage"
)

// The longest texts, in bytes.
const (
	maxName = 253 // of a Kubernetes object
	maxID   = 64
	maxWord = 32
	maxText = 512
	// MaxToken bounds what a pool needs to resume a stream: ZFS's token of a dataset is some hundred bytes.
	MaxToken = 4 << 10
	// MaxPromise bounds the header of a stream, which travels as an offer's promise. With the longest names and ids that
	// the API allows, 32 branches and 8 losses have some 12 KB.
	MaxPromise = 14 << 10
)

// A text is of one of these alphabets. Names reach logs, files and commands.
func isName(s string) bool {
	return outer(s) && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

func isProse(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// outer tells whether a name begins and ends with a letter or a digit, so that it is neither an option
// of a command nor a folder above.
func outer(s string) bool {
	return s != "" && strings.Trim(s[:1], "-.") != "" && strings.Trim(s[len(s)-1:], "-.") != ""
}

// prose is the text with all that isProse refuses replaced, cut to maxText bytes.
func prose(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	for len(s) > maxText {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func appendEpoch(b []byte, e lineage.Epoch) []byte {
	return appendText(binary.BigEndian.AppendUint64(b, e.Number), e.ID)
}

func appendPoint(b []byte, p lineage.Point) []byte {
	return binary.BigEndian.AppendUint64(appendEpoch(b, p.Epoch), p.Seq)
}

// fields reads a message from left to right. After the first mistake it returns zero values and keeps
// the mistake.
type fields struct {
	rest    []byte
	mistake string
}

func (f *fields) wrong(mistake string) {
	if f.mistake == "" {
		f.mistake = mistake
	}
	f.rest = nil
}

func (f *fields) take(n int, field string) []byte {
	if len(f.rest) < n {
		f.wrong(field + " is cut off")
		return nil
	}
	taken := f.rest[:n:n]
	f.rest = f.rest[n:]
	return taken
}

func (f *fields) u8(field string) uint8 {
	if b := f.take(1, field); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) u16(field string) uint16 {
	if b := f.take(2, field); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (f *fields) u64(field string) uint64 {
	if b := f.take(8, field); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// octets are a copy: what they were read from is the next frame's.
func (f *fields) octets(limit int, field string) []byte {
	n := int(f.u16(field))
	if n > limit {
		f.wrong(field + " is too long")
		return nil
	}
	b := f.take(n, field)
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

func (f *fields) text(limit int, valid func(string) bool, field string) string {
	s := string(f.octets(limit, field))
	if f.mistake == "" && !valid(s) {
		f.wrong(field + " has letters that it must not have")
		return ""
	}
	return s
}

func (f *fields) name(field string) string { return f.text(maxName, isName, field) }
func (f *fields) word(field string) string { return f.text(maxWord, isWord, field) }

func (f *fields) id(field string) (id StreamID) {
	copy(id[:], f.take(len(id), field))
	return id
}

// epoch is none, or has a number and an id.
func (f *fields) epoch(field string) lineage.Epoch {
	e := lineage.Epoch{Number: f.u64(field), ID: string(f.octets(maxID, field))}
	if f.mistake == "" && !e.IsZero() && (e.Number == 0 || !isWord(e.ID)) {
		f.wrong(field + " is no epoch")
		return lineage.Epoch{}
	}
	return e
}

// point is none, or has an epoch and a number.
func (f *fields) point(field string) lineage.Point {
	p := lineage.Point{Epoch: f.epoch(field), Seq: f.u64(field)}
	if f.mistake == "" && !p.IsZero() && (p.Seq == 0 || p.Epoch.IsZero()) {
		f.wrong(field + " is no snapshot")
		return lineage.Point{}
	}
	return p
}
