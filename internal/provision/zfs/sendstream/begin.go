package sendstream

import (
	"encoding/binary"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// HeaderSize is how many bytes the first record of a stream has, without data that follows it.
const HeaderSize = 312

// maxPayload bounds the data after the first record. That of a resumed stream has some hundred bytes.
const maxPayload = 4 << 10

// magic begins the first record.
const magic = 0x2F5bacbac

// Kind of a dataset in a stream.
type Kind uint32

// The kinds that Berth has volumes of.
const (
	Filesystem Kind = 2
	Volume     Kind = 3
)

// Begin is the first record of a stream.
type Begin struct {
	// Payload is how many bytes of data follow the record.
	Payload uint32
	// Package says that the stream is one of several streams.
	Package bool
	// Features has a bit for each form of data in the stream.
	Features uint32
	Kind     Kind
	// To is the guid of the snapshot that the stream makes, and From that of its base; 0 for none.
	To, From uint64
}

// The forms of data that a stream may have.
const (
	featureSpill      = 1 << 2
	featureEmbedded   = 1 << 16
	featureLZ4        = 1 << 17
	featureLarge      = 1 << 19
	featureResuming   = 1 << 20
	featureCompressed = 1 << 22
	featureDnodes     = 1 << 23
	featureZstd       = 1 << 25
	known             = featureSpill | featureEmbedded | featureLZ4 | featureLarge | featureResuming | featureCompressed | featureDnodes | featureZstd
)

// The places of the fields in the record. A sender writes it in the byte order of its machine.
const (
	atKind     = 0 // of the record: 0 begins a stream
	atPayload  = 4
	atMagic    = 8
	atVersions = 16
	atType     = 32
	atTo       = 40
	atFrom     = 48
)

// ReadBegin reads a first record of HeaderSize bytes. The error is ErrInvalid.
func ReadBegin(record []byte) (b Begin, err error) {
	if len(record) != HeaderSize {
		return b, fmt.Errorf("%w: the stream ends in its first record", provision.ErrInvalid)
	}
	var order binary.ByteOrder
	for _, o := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if o.Uint64(record[atMagic:]) == magic {
			order = o
		}
	}
	if order == nil || order.Uint32(record[atKind:]) != 0 {
		return b, fmt.Errorf("%w: this is no stream of ZFS", provision.ErrInvalid)
	}
	versions := order.Uint64(record[atVersions:])
	return Begin{
		Payload: order.Uint32(record[atPayload:]), Package: versions&3 != 1, Features: uint32(versions >> 2), //nolint:gosec // what is above has no meaning yet, and is checked with it
		Kind: Kind(order.Uint32(record[atType:])), To: order.Uint64(record[atTo:]), From: order.Uint64(record[atFrom:]),
	}.beyond(versions >> 34)
}

// beyond refuses a record with forms that no version knows.
func (b Begin) beyond(versions uint64) (Begin, error) {
	if versions != 0 {
		return b, fmt.Errorf("%w: the stream has forms of data that are not known: %#x", provision.ErrInvalid, versions)
	}
	return b, nil
}

// Wanted is the stream that was asked for.
type Wanted struct {
	Kind Kind
	// From is the guid of the base; 0 for a stream in full.
	From uint64
	// Resumed says that the stream goes on where another ended.
	Resumed bool
}

// Check returns ErrInvalid unless a stream with this first record is the one that was asked for.
func (b Begin) Check(w Wanted) error {
	resumed := b.Features&featureResuming != 0
	switch {
	case b.Package:
		return fmt.Errorf("%w: this is a package of streams", provision.ErrInvalid)
	case b.Features&^known != 0:
		return fmt.Errorf("%w: the stream has forms of data that Berth never sends: %#x", provision.ErrInvalid, b.Features&^known)
	case b.Kind != w.Kind:
		return fmt.Errorf("%w: the stream is of a dataset of kind %d, not %d", provision.ErrInvalid, b.Kind, w.Kind)
	case b.To == 0:
		return fmt.Errorf("%w: the stream makes no snapshot", provision.ErrInvalid)
	case b.From != w.From:
		return fmt.Errorf("%w: the base of the stream is snapshot %d, not %d", provision.ErrInvalid, b.From, w.From)
	case resumed != w.Resumed:
		return fmt.Errorf("%w: the stream is resumed: %v, which was not asked for", provision.ErrInvalid, resumed)
	case b.Payload > maxPayload || b.Payload != 0 && !resumed:
		return fmt.Errorf("%w: the first record of the stream has %d bytes of data", provision.ErrInvalid, b.Payload)
	}
	return nil
}
