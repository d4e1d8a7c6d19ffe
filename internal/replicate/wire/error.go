package wire

import (
	"errors"
	"fmt"
)

// Reason is a CamelCase word for programs that says why a stream did not come about or ended.
type Reason string

// A peer's bytes are not a stream.
const (
	// BadFrame: the first 20 bytes are no header of a frame.
	BadFrame Reason = "BadFrame"
	// TooLong: a frame is longer than frames of its kind may be.
	TooLong Reason = "TooLong"
	// WrongSum: a frame was changed, lost, repeated or moved.
	WrongSum Reason = "WrongSum"
	// BadMessage: the payload is no message of its kind.
	BadMessage Reason = "BadMessage"
	// BadPacking: the payload does not unpack to the length in its header.
	BadPacking Reason = "BadPacking"
	// OutOfTurn: the frame is sound, and is not the one that may come now.
	OutOfTurn Reason = "OutOfTurn"
	// WrongTotals: the counts or the hash of the whole stream do not agree.
	WrongTotals Reason = "WrongTotals"
)

// A stream is not the one that was asked for.
const (
	// WrongVersion: the two nodes share no version of the protocol.
	WrongVersion Reason = "WrongVersion"
	// WrongPeer: the certificate, the message and the record do not name the same node.
	WrongPeer Reason = "WrongPeer"
	// WrongStream: the offer answers another request.
	WrongStream Reason = "WrongStream"
	// WrongVolume: the offer is of another volume.
	WrongVolume Reason = "WrongVolume"
	// RivalEpoch: the sender's epoch has the number of the receiver's promise and another id.
	RivalEpoch Reason = "RivalEpoch"
	// WrongBase: the increment begins at another snapshot than the receiver's newest.
	WrongBase Reason = "WrongBase"
	// WrongTarget: the stream ends at another snapshot than was asked for.
	WrongTarget Reason = "WrongTarget"
	// WrongFormat: the receiver's pool does not read this format.
	WrongFormat Reason = "WrongFormat"
	// WrongResume: the stream does not go on where the receiver's half stream ends.
	WrongResume Reason = "WrongResume"
)

// One end cannot go on.
const (
	// NotReplica: the peer has no replica of the volume.
	NotReplica Reason = "NotReplica"
	// NoSnapshot: the sender does not have the base or the target any more.
	NoSnapshot Reason = "NoSnapshot"
	// CannotResume: the sender cannot continue the half stream.
	CannotResume Reason = "CannotResume"
	// Busy: too many streams are under way.
	Busy Reason = "Busy"
	// PoolFull: the receiver's pool has no room.
	PoolFull Reason = "PoolFull"
	// Failed: reading from or writing to a pool failed.
	Failed Reason = "Failed"
	// Stopped: the node stops, or its caller gave the stream up.
	Stopped Reason = "Stopped"
)

// The connection ended.
const (
	// Untrusted: the peer's certificate does not prove a node of this cluster.
	Untrusted Reason = "Untrusted"
	// Cut: the connection was lost.
	Cut Reason = "Cut"
	// Silent: the peer said nothing for too long.
	Silent Reason = "Silent"
	// Stalled: the peer is alive, and the stream has not moved for too long.
	Stalled Reason = "Stalled"
	// Unconfirmed: the sender said Done, and never heard whether the receiver committed.
	Unconfirmed Reason = "Unconfirmed"
)

// Error is why a stream did not come about or ended. Every error of this package and of package
// stream about a stream is one.
type Error struct {
	Reason Reason
	// Message is for people. It contains no text of a peer that was not checked.
	Message string
	// Remote: the peer told it, in a Refuse or an Abort.
	Remote bool
	// Cause is the error below, nil if there is none.
	Cause error
}

func (f *Error) Error() string {
	text := string(f.Reason) + ": " + f.Message
	if f.Remote {
		text = "the peer says " + text
	}
	if f.Cause != nil {
		text += ": " + f.Cause.Error()
	}
	return text
}

func (f *Error) Unwrap() error { return f.Cause }

// Errorf returns an Error of this end.
func Errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ReasonOf returns the reason of the first Error in err's chain, "" if there is none.
func ReasonOf(err error) Reason {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Reason
	}
	return ""
}
