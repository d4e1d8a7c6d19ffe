package sendstream

import (
	"encoding/binary"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision"
)

// end is the kind of the last record.
const end = 5

// Differs says whether a stream of the difference between two states of a dataset has any: whether another record than the
// last follows the first. It reads no further than that. The error is ErrInvalid if the stream is none, or ends before.
func Differs(stream io.Reader) (bool, error) {
	record := make([]byte, HeaderSize)
	if _, err := io.ReadFull(stream, record); err != nil {
		return false, fmt.Errorf("%w: the stream ends in its first record: %w", provision.ErrInvalid, err)
	}
	begin, err := ReadBegin(record)
	if err != nil {
		return false, err
	}
	if _, err := io.CopyN(io.Discard, stream, int64(begin.Payload)); err != nil {
		return false, fmt.Errorf("%w: the stream ends in the data of its first record: %w", provision.ErrInvalid, err)
	}
	if _, err := io.ReadFull(stream, record); err != nil {
		return false, fmt.Errorf("%w: the stream ends after its first record: %w", provision.ErrInvalid, err)
	}
	kind := record[atKind : atKind+4]
	return binary.LittleEndian.Uint32(kind) != end && binary.BigEndian.Uint32(kind) != end, nil
}
