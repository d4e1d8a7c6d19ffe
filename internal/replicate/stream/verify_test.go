package stream_test

import (
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// asked is what beta asked alpha for, answer the offer that fits, and begun a half stream of it.
func asked() (want wire.Want, answer wire.Offer, begun *stream.Half) {
	want = wire.Want{Stream: ask}
	want.ID, want.To = wire.StreamID{1}, "beta"
	answer = wire.Offer{Stream: want.Stream, Form: wire.Incremental}
	return want, answer, &stream.Half{Stream: want.Stream, Resume: wire.Resume{Offset: 7}}
}

func TestAnOfferIsComparedWithTheRequestPartByPart(t *testing.T) {
	tests := map[string]struct {
		peer   string
		change func(*wire.Offer)
		want   wire.Reason
	}{
		"what was asked for": {},
		"a newer epoch":      {change: func(o *wire.Offer) { o.Epoch = lineage.Epoch{Number: 3, ID: "three"} }},
		"another peer":       {peer: "gamma", want: wire.WrongPeer},
		"another sender":     {change: func(o *wire.Offer) { o.From = "gamma" }, want: wire.WrongPeer},
		"another receiver":   {change: func(o *wire.Offer) { o.To = "gamma" }, want: wire.WrongPeer},
		"another request":    {change: func(o *wire.Offer) { o.ID[0]++ }, want: wire.WrongStream},
		"another volume":     {change: func(o *wire.Offer) { o.Volume = "pvc-2" }, want: wire.WrongVolume},
		"another base":       {change: func(o *wire.Offer) { o.Base.Seq++ }, want: wire.WrongBase},
		"no base":            {change: func(o *wire.Offer) { o.Base = lineage.Point{} }, want: wire.WrongBase},
		"another target":     {change: func(o *wire.Offer) { o.Target.Seq++ }, want: wire.WrongTarget},
		"another format":     {change: func(o *wire.Offer) { o.Format = "zfs" }, want: wire.WrongFormat},
		"an older epoch":     {change: func(o *wire.Offer) { o.Epoch = epoch1 }},
		"a rival epoch":      {change: func(o *wire.Offer) { o.Epoch.ID = "other" }, want: wire.RivalEpoch},
		"no epoch":           {change: func(o *wire.Offer) { o.Epoch = lineage.Epoch{} }, want: wire.BadMessage},
		"a rest of nothing":  {change: func(o *wire.Offer) { o.Form = wire.Resumed }, want: wire.WrongResume},
	}
	for name, test := range tests {
		want, offer, _ := asked()
		if test.change != nil {
			test.change(&offer)
		}
		if test.peer == "" {
			test.peer = "alpha"
		}
		if err := stream.Verify(want, nil, test.peer, offer); wire.ReasonOf(err) != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestTheRestOfAStreamIsItsOwn(t *testing.T) {
	tests := map[string]struct {
		change func(*wire.Offer)
		want   wire.Reason
	}{
		"the rest":                       {change: func(*wire.Offer) {}},
		"the whole stream":               {change: func(o *wire.Offer) { o.Form, o.Offset = wire.Incremental, 0 }, want: wire.WrongResume},
		"a whole stream from the middle": {change: func(o *wire.Offer) { o.Form = wire.Incremental }, want: wire.WrongResume},
		"from another byte":              {change: func(o *wire.Offer) { o.Offset++ }, want: wire.WrongResume},
		"of a newer epoch":               {change: func(o *wire.Offer) { o.Epoch = lineage.Epoch{Number: 3, ID: "three"} }},
		"of an older epoch":              {change: func(o *wire.Offer) { o.Epoch = epoch1 }},
	}
	for name, test := range tests {
		want, offer, half := asked()
		want.Resume, offer.Form, offer.Offset = half.Resume, wire.Resumed, half.Resume.Offset
		test.change(&offer)
		if err := stream.Verify(want, half, "alpha", offer); wire.ReasonOf(err) != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestAHalfStreamWithoutBytesIsOfNoUse(t *testing.T) {
	want, _, half := asked()
	if err := stream.Continues(want.Stream, *half); err != nil {
		t.Errorf("a half stream of the same cannot go on: %v", err)
	}
	half.Resume = wire.Resume{Token: []byte("token")}
	if err := stream.Continues(want.Stream, *half); err != nil {
		t.Errorf("a half stream with a token cannot go on: %v", err)
	}
	half.Resume = wire.Resume{}
	if err := stream.Continues(want.Stream, *half); wire.ReasonOf(err) != wire.WrongResume {
		t.Errorf("a half stream without bytes goes on: %v", err)
	}
}
