package writes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Slot is the size of a record's place on the disk, in bytes. A record itself fits into one sector of
// 512 bytes, so a disk never stores half of it.
const Slot = 4096

const sector = 512

// Record is one write.
type Record struct {
	// Sequence counts the records of the disk from 1.
	Sequence int64 `json:"sequence"`
	// Term counts the writers of the disk from 1. One process has one term.
	Term int64 `json:"term"`
	// Node, Boot and Pod tell where the writer ran.
	Node string `json:"node"`
	Boot string `json:"boot"`
	Pod  string `json:"pod"`
	// Before is the checksum of the record before, empty for the first.
	Before string `json:"before"`
}

// Encode returns the content of the record's slot, and its checksum.
func (r *Record) Encode() (slot []byte, sum string, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, "", err
	}
	sum = checksum(body)
	text := sum + " " + string(body) + "\n"
	if len(text) > sector {
		return nil, "", fmt.Errorf("a record has %d bytes, and a sector has %d", len(text), sector)
	}
	slot = make([]byte, Slot)
	copy(slot, text)
	return slot, sum, nil
}

// content says what a slot has.
type content int

const (
	empty   content = iota // zeros: nothing was ever written
	whole                  // a record
	damaged                // anything else
)

// decode reads a slot.
func decode(slot []byte) (Record, string, content) {
	if len(bytes.Trim(slot, "\x00")) == 0 {
		return Record{}, "", empty
	}
	line, rest, found := bytes.Cut(slot, []byte("\n"))
	sum, body, spaced := strings.Cut(string(line), " ")
	var r Record
	if !found || !spaced || len(bytes.Trim(rest, "\x00")) > 0 || sum != checksum([]byte(body)) || json.Unmarshal([]byte(body), &r) != nil {
		return Record{}, "", damaged
	}
	return r, sum, whole
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// Acknowledgement says that a record had reached the disk.
type Acknowledgement struct {
	Sequence, Term int64
	Sum            string
}

// mark begins each line of an acknowledgement, which may stand among other lines of a console.
const mark = "acknowledged-write"

// String is a line without its end.
func (a Acknowledgement) String() string {
	return fmt.Sprintf("%s %d %d %s", mark, a.Sequence, a.Term, a.Sum)
}

// ParseAcknowledgement reads a line. One that other output has cut in two is none.
func ParseAcknowledgement(line string) (a Acknowledgement, ok bool) {
	var begin string
	line = strings.TrimSpace(line)
	n, err := fmt.Sscanf(line, "%s %d %d %s", &begin, &a.Sequence, &a.Term, &a.Sum)
	if n != 4 || err != nil || a.String() != line || len(a.Sum) != 32 {
		return Acknowledgement{}, false
	}
	return a, true
}
