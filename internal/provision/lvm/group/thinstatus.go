package group

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
)

// Modes of a thin pool, as the kernel names them. A pool that has failed says
// nothing else.
const (
	modeOutOfData = "out_of_data_space"
	modeReadOnly  = "ro"
	modeWorks     = "rw"
	modeFailed    = "Fail"
	modeError     = "Error"
)

// ThinStatus is the kernel's status of a thin pool. The zero value is that of a pool that is not
// active, which the kernel does not know.
type ThinStatus struct {
	mode           string
	needsCheck     bool
	data, metadata use
	// Failure is why the kernel could not be asked.
	Failure string
}

// use is how many of a number of blocks are taken.
type use struct{ taken, total uint64 }

var errThinStatus = errors.New("the kernel's status of the thin pool is not understood")

// ParseThinStatus reads the status of the device mapper's thin-pool target:
//
//	TRANSACTION METADATA_USED/TOTAL DATA_USED/TOTAL HELD_ROOT MODE [OPTION ...] needs_check|- LOW_WATER
func ParseThinStatus(text string) (s ThinStatus, err error) {
	words := strings.Fields(text)
	if len(words) > 0 && (words[0] == modeFailed || words[0] == modeError) {
		return ThinStatus{mode: words[0]}, nil
	}
	if len(words) < 5 {
		return s, fmt.Errorf("%w: %q", errThinStatus, text)
	}
	s.mode, s.needsCheck = words[4], slices.Contains(words[5:], "needs_check")
	if s.metadata, err = parseUse(words[1]); err == nil {
		s.data, err = parseUse(words[2])
	}
	if err != nil || !slices.Contains([]string{modeWorks, modeReadOnly, modeOutOfData}, s.mode) {
		return ThinStatus{}, fmt.Errorf("%w: %q", errThinStatus, text)
	}
	return s, nil
}

func parseUse(text string) (u use, err error) {
	taken, total, _ := strings.Cut(text, "/")
	if u.taken, err = strconv.ParseUint(taken, 10, 64); err == nil {
		u.total, err = strconv.ParseUint(total, 10, 64)
	}
	if err == nil && (u.total == 0 || u.taken > u.total) {
		err = errThinStatus
	}
	return u, err
}

// of is the share of a whole that is taken, rounded up.
func (u use) of(whole uint64) uint64 {
	if u.total == 0 {
		return 0
	}
	high, low := bits.Mul64(u.taken, whole) // taken is at most total, so the quotient fits
	quotient, rest := bits.Div64(high, low, u.total)
	if rest > 0 {
		quotient++
	}
	return quotient
}

// fill returns the fill of a pool that has so many bytes for data.
func (s ThinStatus) fill(size int64) provision.Fill {
	return provision.Fill{Data: int64(s.data.of(uint64(size))), Metadata: int(s.metadata.of(100))} //nolint:gosec // both are at most the whole
}

// trouble is empty, or says why nothing new may be placed in the pool, and the way
// back.
func (s ThinStatus) trouble(name string) string {
	switch {
	case s.Failure != "":
		return s.Failure
	case s.mode == modeFailed || s.mode == modeError:
		return "the thin pool has failed: " + anew(name)
	case s.needsCheck:
		return "the metadata of the thin pool could not be written and needs a check: " + anew(name)
	case s.mode == modeReadOnly:
		return "the metadata of the thin pool cannot be written: make room in it (lvextend --poolmetadatasize +1G " + name + ") or repair it (lvconvert --repair " + name + ")"
	case s.mode == modeOutOfData:
		return "the thin pool is out of space, writes to its volumes fail: extend it (lvextend --size +SIZE " + name + ") or delete volumes"
	}
	return ""
}

// anew returns the remedy for a pool whose disk failed. The kernel does not change the pool's
// metadata until it was checked. LVM checks it whenever it activates a pool.
//
// Berth does not deactivate a volume by itself, even if no process has it open: a pod that was
// given a raw device need not have it open, and after an activation the device's number may be
// another volume's.
func anew(name string) string {
	group, thin, _ := strings.Cut(name, "/")
	return "once its disks work, stop what uses its volumes and deactivate it with them (lvchange --activate n --select 'pool_lv=" + thin + " || lv_name=" + thin + "' " + group +
		"), and Berth activates it with a check when it is needed; what the check refuses is to be repaired (lvconvert --repair " + name + ")"
}

// Live says that the pool is active, if only through one of its volumes.
func (s ThinStatus) Live() bool { return s.mode != "" }

// News says whether a status must be signalled after another one. It need not be if only the fill
// has moved, by less than a hundredth.
func (s ThinStatus) News(told ThinStatus) bool {
	return s.mode != told.mode || s.needsCheck != told.needsCheck || s.Failure != told.Failure ||
		s.data.moved(told.data) || s.metadata.moved(told.metadata)
}

// moved says whether a use moved by a hundredth of the whole, or the whole changed.
func (u use) moved(told use) bool {
	distance := max(u.taken, told.taken) - min(u.taken, told.taken)
	return u.total != told.total || distance > 0 && distance*100 >= u.total
}
