package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/wire"
)

var (
	e1     = lineage.Epoch{Number: 1, ID: "one"}
	e2     = lineage.Epoch{Number: math.MaxUint64, ID: strings.Repeat("x", 64)}
	stream = wire.Stream{
		ID: wire.StreamID{1, 2, 3}, Volume: "pvc-1", From: "alpha", To: "10.0.0.1", Epoch: e2,
		Base: lineage.Point{Epoch: e1, Seq: 4}, Target: lineage.Point{Epoch: e2, Seq: 7}, Format: "zfs",
	}
	full = wire.Stream{Volume: "v", From: "a", To: "b", Epoch: e1, Target: lineage.Point{Epoch: e1, Seq: 1}, Format: "btrfs"}
	// messages has at least one of each kind.
	messages = []wire.Message{
		wire.Hello{Lowest: 1, Highest: 3, Node: "alpha.example.org"},
		wire.Want{Stream: stream},
		wire.Want{Stream: full, Resume: wire.Resume{Offset: 1 << 40, Token: bytes.Repeat([]byte{7}, wire.MaxToken)}},
		wire.Offer{Stream: stream, Form: wire.Incremental, Size: 1 << 50, Promise: bytes.Repeat([]byte{9}, wire.MaxPromise)},
		wire.Offer{Stream: full, Form: wire.Full},
		wire.Offer{Stream: stream, Form: wire.Resumed, Offset: 12},
		wire.Accept{ID: wire.StreamID{9}},
		wire.Refuse{Reason: wire.NoSnapshot, Message: "snapshot 7 is gone – möglich"},
		wire.Ack{Passed: 1, Durable: math.MaxUint64},
		wire.Done{Frames: 1, Bytes: 2, Sum: 3},
		wire.Committed{Bytes: 2, Sum: 3},
		wire.Abort{Reason: wire.Failed},
		wire.Alive{},
	}
)

func TestEachMessageArrivesAsItWasWritten(t *testing.T) {
	for _, m := range messages {
		b, err := wire.Encode(m)
		if err != nil {
			t.Errorf("%s: %v", wire.KindOf(m), err)
			continue
		}
		got, err := wire.Decode(wire.KindOf(m), b)
		if err != nil || !cmp.Equal(got, m) {
			t.Errorf("%s is %+v, %v, want %+v", wire.KindOf(m), got, err, m)
		}
	}
}

func TestAMessageThatIsCutOffOrTooLongIsRefused(t *testing.T) {
	for _, m := range messages {
		b, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if _, err := wire.Decode(wire.KindOf(m), b[:n]); wire.ReasonOf(err) != wire.BadMessage {
				t.Errorf("%d of %d bytes of a message of kind %s are read: %v", n, len(b), wire.KindOf(m), err)
			}
		}
		if _, err := wire.Decode(wire.KindOf(m), append(b, 0)); wire.ReasonOf(err) != wire.BadMessage {
			t.Errorf("a message of kind %s with one byte more is read: %v", wire.KindOf(m), err)
		}
	}
}

func TestNoMessageHasWhatMayHarmItsReader(t *testing.T) {
	change := func(edit func(*wire.Stream)) wire.Message {
		s := stream
		edit(&s)
		return wire.Want{Stream: s}
	}
	tests := map[string]wire.Message{
		"a volume that is a folder above":  change(func(s *wire.Stream) { s.Volume = ".." }),
		"a volume that is an option":       change(func(s *wire.Stream) { s.Volume = "-rf" }),
		"a volume with a slash":            change(func(s *wire.Stream) { s.Volume = "a/b" }),
		"a volume with a snapshot":         change(func(s *wire.Stream) { s.Volume = "a@b" }),
		"no volume":                        change(func(s *wire.Stream) { s.Volume = "" }),
		"a volume that is too long":        change(func(s *wire.Stream) { s.Volume = strings.Repeat("a", 254) }),
		"a node with a line's end":         change(func(s *wire.Stream) { s.From = "a\nb" }),
		"a node with a large letter":       change(func(s *wire.Stream) { s.To = "A" }),
		"an epoch without an id":           change(func(s *wire.Stream) { s.Epoch.ID = "" }),
		"an epoch without a number":        change(func(s *wire.Stream) { s.Epoch.Number = 0 }),
		"an epoch with a space":            change(func(s *wire.Stream) { s.Epoch.ID = "a b" }),
		"an epoch that is too long":        change(func(s *wire.Stream) { s.Epoch.ID = strings.Repeat("a", 65) }),
		"a base without a number":          change(func(s *wire.Stream) { s.Base.Seq = 0 }),
		"a base without an epoch":          change(func(s *wire.Stream) { s.Base.Epoch = lineage.Epoch{} }),
		"no target":                        change(func(s *wire.Stream) { s.Target = lineage.Point{} }),
		"a target that is the base":        change(func(s *wire.Stream) { s.Target = s.Base }),
		"no format":                        change(func(s *wire.Stream) { s.Format = "" }),
		"a token that is too long":         wire.Want{Stream: stream, Resume: wire.Resume{Token: make([]byte, wire.MaxToken+1)}},
		"a promise that is too long":       wire.Offer{Stream: full, Form: wire.Full, Promise: make([]byte, wire.MaxPromise+1)},
		"a promise longer than its length": wire.Offer{Stream: full, Form: wire.Full, Promise: make([]byte, 1<<16)},
		"no form":                          wire.Offer{Stream: full},
		"a form that does not exist":       wire.Offer{Stream: full, Form: wire.Resumed + 1},
		"a full copy with a base":          wire.Offer{Stream: stream, Form: wire.Full},
		"an increment without a base":      wire.Offer{Stream: full, Form: wire.Incremental},
		"a full copy from the middle":      wire.Offer{Stream: full, Form: wire.Full, Offset: 1},
		"a reason that is a sentence":      wire.Abort{Reason: "Not a word"},
		"no reason":                        wire.Refuse{Message: "because"},
		"a node of no name":                wire.Hello{},
	}
	for name, m := range tests {
		if _, err := wire.Encode(m); err == nil {
			t.Errorf("%s is written, and would be read: %+v", name, m)
		}
	}
}

func TestALastWordIsMadeReadable(t *testing.T) {
	b, err := wire.Encode(wire.Abort{Reason: wire.Failed, Message: "a\x1b[31m\n" + strings.Repeat("ö", 1000) + "\xff"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := wire.Decode(wire.KindAbort, b)
	if text := m.(wire.Abort).Message; err != nil || strings.ContainsAny(text, "\x1b\n") || len(text) > 512 || !strings.HasPrefix(text, "a [31m ö") {
		t.Errorf("the message is %q, %v", text, err)
	}
}

func TestTwoNodesSpeakTheHighestVersionThatBothKnow(t *testing.T) {
	tests := map[string]struct {
		lowest, highest, want uint16
	}{
		"the same":    {1, 1, 1},
		"newer":       {1, 9, 1},
		"too new":     {2, 9, 0},
		"too old":     {0, 0, 0},
		"upside down": {9, 1, 0},
	}
	for name, test := range tests {
		got, err := wire.Hello{Lowest: test.lowest, Highest: test.highest, Node: "a"}.Version()
		if got != test.want || (test.want == 0) != (wire.ReasonOf(err) == wire.WrongVersion) {
			t.Errorf("%s: version %d, %v, want %d", name, got, err, test.want)
		}
	}
}

// written returns frames of data, packed and not, between two messages.
func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := wire.NewWriter(&b, packer(t))
	fine := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	fine(w.Message(wire.Hello{Lowest: 1, Highest: 1, Node: "alpha"}))
	for _, pack := range []bool{false, true} {
		buf := append(make([]byte, wire.HeaderLen), strings.Repeat("berth", 100)...)
		fine(w.Data(w.Prepare(buf, pack)))
	}
	fine(w.Data(w.Prepare(append(make([]byte, wire.HeaderLen), 1, 2, 3), true))) // packing makes it longer
	fine(w.Message(wire.Done{Frames: 3, Bytes: 1003, Sum: w.Chain().Sum()}))
	return b.Bytes()
}

func packer(t testing.TB) *wire.Packer {
	t.Helper()
	p, err := wire.NewPacker(1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// frames reads all frames.
func frames(b []byte, p *wire.Packer) (all []wire.Frame, err error) {
	r := wire.NewReader(bytes.NewReader(b), p)
	for {
		f, err := r.Next(make([]byte, wire.MaxData))
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
}

func TestFramesArriveAsTheyWereWritten(t *testing.T) {
	all, err := frames(written(t), packer(t))
	if err != io.EOF || len(all) != 5 { //nolint:errorlint // the end is io.EOF itself
		t.Fatalf("%d frames, %v", len(all), err)
	}
	data := strings.Repeat("berth", 100)
	if string(all[1].Payload) != data || string(all[2].Payload) != data || string(all[3].Payload) != "\x01\x02\x03" {
		t.Error("the data is another")
	}
	if all[1].Wire != 500 || all[2].Wire >= 500 || all[3].Wire != 3 {
		t.Errorf("on the wire the data had %d, %d and %d bytes", all[1].Wire, all[2].Wire, all[3].Wire)
	}
}

// A packed payload has bits that say nothing; changing one changes nothing that is read.
func TestNoChangedBitChangesTheData(t *testing.T) {
	b, p := written(t), packer(t)
	whole, _ := frames(b, p)
	passed := 0
	for bit := range len(b) * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		all, err := frames(b, p)
		b[bit/8] ^= 1 << (bit % 8)
		if !reflect.DeepEqual(all, append([]wire.Frame(nil), whole[:len(all)]...)) {
			t.Fatalf("bit %d is changed, and other data is read", bit)
		}
		if len(all) == len(whole) {
			passed++
		} else if wire.ReasonOf(err) == "" && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("bit %d is changed: %v", bit, err)
		}
	}
	if passed > 8 {
		t.Errorf("%d changed bits were not found", passed)
	}
}

func TestABombIsRefusedWithoutMemoryForIt(t *testing.T) {
	p := packer(t)
	bomb := p.Pack(nil, make([]byte, 64<<20))
	dst := make([]byte, wire.MaxData)
	allocated := testing.AllocsPerRun(20, func() {
		if err := p.Unpack(dst, bomb); wire.ReasonOf(err) != wire.BadPacking {
			t.Fatalf("a bomb unpacks: %v", err)
		}
	})
	if allocated > 20 {
		t.Errorf("%.0f allocations for a bomb", allocated)
	}
	for name, payload := range map[string][]byte{
		"nothing": nil, "no frame of zstd": []byte("berth"), "a byte less": p.Pack(nil, make([]byte, wire.MaxData-1)),
		"a byte more": p.Pack(nil, make([]byte, wire.MaxData+1)), "two frames": append(p.Pack(nil, dst), p.Pack(nil, dst)...),
	} {
		guard := append(make([]byte, wire.MaxData), 0xAA)
		if err := p.Unpack(guard[:wire.MaxData], payload); wire.ReasonOf(err) != wire.BadPacking {
			t.Errorf("%s unpacks: %v", name, err)
		}
		if guard[wire.MaxData] != 0xAA {
			t.Errorf("%s was written beyond its end", name)
		}
	}
}
