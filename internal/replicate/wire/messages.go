package wire

import (
	"encoding/binary"

	"berth.dev/berth/internal/lineage"
)

// The versions of the protocol that this code speaks.
const (
	Lowest  = 1
	Highest = 1
)

// Message is what a frame other than Data says.
type Message interface {
	kind() Kind
	// append appends the message's bytes to b.
	append(b []byte) []byte
}

// KindOf returns the kind of the message's frame.
func KindOf(m Message) Kind { return m.kind() }

// StreamID is random. The receiver chooses one for each request, and the offer repeats it: an offer that
// was recorded earlier answers no request.
type StreamID [16]byte

// Hello is the first message of each end.
type Hello struct {
	// Lowest and Highest version that the node speaks.
	Lowest, Highest uint16
	// Node is who speaks. The certificate must say the same.
	Node string
}

// Version returns the highest version that both nodes speak.
func (m Hello) Version() (uint16, error) {
	version := min(m.Highest, Highest)
	if version < max(m.Lowest, Lowest) {
		return 0, Errorf(WrongVersion, "node %s speaks versions %d to %d, this node %d to %d", m.Node, m.Lowest, m.Highest, Lowest, Highest)
	}
	return version, nil
}

// Stream names what is sent, and from whom to whom. The request and the offer each have one, and they
// must agree but for the epoch, which may be newer in the offer.
type Stream struct {
	ID StreamID
	// Volume is the name of the Volume.
	Volume string
	// From and To are the names of the sender's and the receiver's node.
	From, To string
	// Epoch is the newest that its author has promised to obey.
	Epoch lineage.Epoch
	// Base is the snapshot that both have, none for a full copy. Target is the one to be sent.
	Base, Target lineage.Point
	// Format is the language of the bytes, by the name of the pool's type.
	Format string
}

// Resume is where a half stream goes on.
type Resume struct {
	// Offset is how many bytes the receiver has kept.
	Offset uint64
	// Token is the receiver's pool's word to the sender's pool, empty if the offset says all.
	Token []byte
}

// Want asks for a stream.
type Want struct {
	Stream
	// Resume is zero unless the receiver has kept a part of this very stream.
	Resume Resume
}

// Form is how much of a snapshot a stream has.
type Form uint8

// The forms of streams.
const (
	// Full: all of the target.
	Full Form = iota + 1
	// Incremental: what changed between base and target.
	Incremental
	// Resumed: the rest of either.
	Resumed
)

func (f Form) String() string {
	return [...]string{"none", Full: "full", Incremental: "incremental", Resumed: "resumed"}[min(f, Resumed)]
}

// Offer is what the sender will send.
type Offer struct {
	Stream
	Form Form
	// Offset repeats that of the request.
	Offset uint64
	// Size is how many bytes will come, 0 if the sender cannot tell. It is an estimate for people.
	Size uint64
	// Promise is the sender's promise in the form of its owner, to be kept with the snapshot.
	Promise []byte
}

// Accept is the receiver's word that data may come.
type Accept struct{ ID StreamID }

// Refuse ends a conversation before the first byte of data.
type Refuse struct {
	Reason  Reason
	Message string
}

// Ack says how far the receiver is.
type Ack struct {
	// Passed bytes were handed to the pool since the stream or its rest began. Durable bytes would
	// survive a crash, counted from the beginning of the whole stream; 0 if only the pool knows.
	Passed, Durable uint64
}

// Done says that all data was sent.
type Done struct {
	// Frames and Bytes of data, and the sum of the last frame of data.
	Frames, Bytes, Sum uint64
}

// Committed says that the receiver has the snapshot, durably.
type Committed struct {
	// Bytes and Sum repeat those of Done.
	Bytes, Sum uint64
}

// Abort ends a conversation at any time.
type Abort struct {
	Reason  Reason
	Message string
}

// Alive keeps the connection from being taken for dead.
type Alive struct{}

// The kinds of the messages.

func (Hello) kind() Kind     { return KindHello }
func (Want) kind() Kind      { return KindWant }
func (Offer) kind() Kind     { return KindOffer }
func (Accept) kind() Kind    { return KindAccept }
func (Refuse) kind() Kind    { return KindRefuse }
func (Ack) kind() Kind       { return KindAck }
func (Done) kind() Kind      { return KindDone }
func (Committed) kind() Kind { return KindCommitted }
func (Abort) kind() Kind     { return KindAbort }
func (Alive) kind() Kind     { return KindAlive }

func (m Hello) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, m.Lowest)
	b = binary.BigEndian.AppendUint16(b, m.Highest)
	return appendText(b, m.Node)
}

func (s Stream) append(b []byte) []byte {
	b = append(b, s.ID[:]...)
	b = appendText(b, s.Volume)
	b = appendText(b, s.From)
	b = appendText(b, s.To)
	b = appendEpoch(b, s.Epoch)
	b = appendPoint(b, s.Base)
	b = appendPoint(b, s.Target)
	return appendText(b, s.Format)
}

func (m Want) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(m.Stream.append(b), m.Resume.Offset)
	return appendText(b, m.Resume.Token)
}

func (m Offer) append(b []byte) []byte {
	b = append(m.Stream.append(b), byte(m.Form))
	b = binary.BigEndian.AppendUint64(b, m.Offset)
	b = binary.BigEndian.AppendUint64(b, m.Size)
	return appendText(b, m.Promise)
}

func (m Accept) append(b []byte) []byte { return append(b, m.ID[:]...) }

func (m Refuse) append(b []byte) []byte {
	return appendText(appendText(b, m.Reason), prose(m.Message))
}

func (m Ack) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, m.Passed), m.Durable)
}

func (m Done) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, m.Frames)
	b = binary.BigEndian.AppendUint64(b, m.Bytes)
	return binary.BigEndian.AppendUint64(b, m.Sum)
}

func (m Committed) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, m.Bytes), m.Sum)
}

func (m Abort) append(b []byte) []byte {
	return appendText(appendText(b, m.Reason), prose(m.Message))
}

func (Alive) append(b []byte) []byte { return b }
