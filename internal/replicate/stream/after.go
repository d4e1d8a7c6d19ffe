package stream

import "berth.dev/berth/internal/replicate/wire"

// Next is what a receiver does after a stream that did not come to its end.
type Next string

const (
	// GoOn: ask again soon for the rest of the stream. What arrived is sound.
	GoOn Next = "GoOn"
	// StartOver: ask again soon, from the beginning.
	StartOver Next = "StartOver"
	// Later: ask again when other streams have ended or room was made.
	Later Next = "Later"
	// Decide: the facts have changed. Read the record and ask the rules of ownership again.
	Decide Next = "Decide"
	// Person: no repetition helps. An administrator has to do something.
	Person Next = "Person"
)

// Course is what follows a fault.
type Course struct {
	Next Next
	// Keep: what arrived so far is sound and may be continued.
	Keep bool
}

var courses = map[wire.Reason]Course{
	wire.Cut:         {GoOn, true},
	wire.Silent:      {GoOn, true},
	wire.Stalled:     {GoOn, true},
	wire.Stopped:     {GoOn, true},
	wire.Unconfirmed: {Decide, true},
	wire.Busy:        {Later, true},
	wire.PoolFull:    {Later, false}, // a half stream would keep the room that is missing
	wire.Failed:      {Later, false},

	wire.BadFrame:     {StartOver, false},
	wire.TooLong:      {StartOver, false},
	wire.WrongSum:     {StartOver, false},
	wire.BadMessage:   {StartOver, false},
	wire.BadPacking:   {StartOver, false},
	wire.OutOfTurn:    {StartOver, false},
	wire.WrongTotals:  {StartOver, false},
	wire.WrongResume:  {StartOver, false},
	wire.CannotResume: {StartOver, false},

	wire.WrongStream: {Decide, false},
	wire.WrongVolume: {Decide, false},
	wire.RivalEpoch:  {Decide, false},
	wire.WrongBase:   {Decide, false},
	wire.WrongTarget: {Decide, false},
	wire.NotReplica:  {Decide, false},
	wire.NoSnapshot:  {Decide, false},

	wire.Untrusted:    {Person, true},
	wire.WrongPeer:    {Person, false},
	wire.WrongVersion: {Person, true},
	wire.WrongFormat:  {Person, false},
}

// After returns what a receiver does after err, which Receive has returned. A peer's reason that this
// node does not know, because the peer's version is newer, is treated as a failure of the peer.
func After(err error) Course {
	if c, ok := courses[wire.ReasonOf(err)]; ok {
		return c
	}
	return courses[wire.Failed]
}
