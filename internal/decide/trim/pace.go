package trim

import "time"

const (
	// Least is the smallest part of a filesystem that is trimmed at once, and what all parts are multiples of:
	// ext4 remembers of each group of blocks, which is as large, whether it was trimmed as a whole.
	Least = int64(128 << 20)
	// First is the part that a trim begins with.
	First = int64(1 << 30)
	// most bounds a part, whatever the pace.
	most = int64(64 << 30)
	// An unmount may have to wait for a part. So a part that took longer than slow is followed by a smaller
	// one. A part that took less than quick is mostly the cost of the call.
	slow, quick = time.Second, 250 * time.Millisecond
)

// Pace returns how large the next part is, after a part of that length took so long.
func Pace(length int64, took time.Duration) int64 {
	switch {
	case took > slow:
		return max(length/2, Least)
	case took < quick:
		return min(2*length, most)
	}
	return length
}

// From returns the byte from which a trim goes on: a multiple of Least, so that no group of blocks is trimmed in
// two parts.
func From(kept Kept) int64 { return max(kept.Next-kept.Next%Least, 0) }
