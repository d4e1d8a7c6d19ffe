package wire

// Encode returns the payload of a message. A message that Decode would refuse is an Error, so that a
// mistake of this node shows on this node.
func Encode(m Message) ([]byte, error) {
	b := m.append(nil)
	if len(b) > MaxMessage {
		return nil, Errorf(TooLong, "a message of kind %s would have %d bytes, and may have %d", m.kind(), len(b), MaxMessage)
	}
	if _, err := Decode(m.kind(), b); err != nil {
		return nil, err
	}
	return b, nil
}

// decoders has an entry for each kind but Data.
var decoders = map[Kind]func(*fields) Message{
	KindHello: func(f *fields) Message {
		return Hello{Lowest: f.u16("lowest version"), Highest: f.u16("highest version"), Node: f.name("node")}
	},
	KindWant:   func(f *fields) Message { return f.want() },
	KindOffer:  func(f *fields) Message { return f.offer() },
	KindAccept: func(f *fields) Message { return Accept{ID: f.id("id")} },
	KindRefuse: func(f *fields) Message {
		return Refuse{Reason: Reason(f.word("reason")), Message: f.text(maxText, isProse, "message")}
	},
	KindAck: func(f *fields) Message { return Ack{Passed: f.u64("passed"), Durable: f.u64("durable")} },
	KindDone: func(f *fields) Message {
		return Done{Frames: f.u64("frames"), Bytes: f.u64("bytes"), Sum: f.u64("sum")}
	},
	KindCommitted: func(f *fields) Message { return Committed{Bytes: f.u64("bytes"), Sum: f.u64("sum")} },
	KindAbort: func(f *fields) Message {
		return Abort{Reason: Reason(f.word("reason")), Message: f.text(maxText, isProse, "message")}
	},
	KindAlive: func(*fields) Message { return Alive{} },
}

// Decode reads the payload of a frame of that kind.
func Decode(kind Kind, payload []byte) (Message, error) {
	decode := decoders[kind]
	if decode == nil {
		return nil, Errorf(OutOfTurn, "a frame of kind %s is no message", kind)
	}
	f := &fields{rest: payload}
	m := decode(f)
	if f.mistake == "" && len(f.rest) > 0 {
		f.wrong("it has bytes at its end that say nothing")
	}
	if f.mistake != "" {
		return nil, Errorf(BadMessage, "a message of kind %s: %s", kind, f.mistake)
	}
	return m, nil
}

func (f *fields) stream() Stream {
	s := Stream{
		ID: f.id("id"), Volume: f.name("volume"), From: f.name("from"), To: f.name("to"),
		Epoch: f.epoch("epoch"), Base: f.point("base"), Target: f.point("target"), Format: f.word("format"),
	}
	switch {
	case s.Target.IsZero():
		f.wrong("the target is no snapshot")
	case s.Base == s.Target:
		f.wrong("the base is the target")
	}
	return s
}

func (f *fields) want() Want {
	return Want{Stream: f.stream(), Resume: Resume{Offset: f.u64("offset"), Token: f.octets(MaxToken, "token")}}
}

// IsZero tells whether a stream begins at its beginning.
func (r Resume) IsZero() bool { return r.Offset == 0 && len(r.Token) == 0 }

func (f *fields) offer() Offer {
	o := Offer{
		Stream: f.stream(), Form: Form(f.u8("form")),
		Offset: f.u64("offset"), Size: f.u64("size"), Promise: f.octets(MaxPromise, "promise"),
	}
	switch {
	case o.Form < Full || o.Form > Resumed:
		f.wrong("there is no such form")
	case o.Form == Full && !o.Base.IsZero(), o.Form == Incremental && o.Base.IsZero():
		f.wrong("the form and the base do not agree")
	case o.Form != Resumed && o.Offset != 0:
		f.wrong("only the rest of a stream begins at an offset")
	}
	return o
}
