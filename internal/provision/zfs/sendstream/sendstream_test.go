package sendstream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/sendstream"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// tokenOfZFS is a token of ZFS 2.1.11, of a part of the difference between two snapshots of a zvol.
const tokenOfZFS = "1-11025e3c11-120-789c636064000310a501c49c50360710a715e5e7a69766a63040812eb3c7fcaff39bd72800d9ec48eaf293b252934b207c10c0904f4b2b4e2d01c964c0e5d990e4932a4b528b817442040b56fd25f9105758fdf39d36e1da45530324794eb07c5e626e2a904ecccbd62fd3af72484a2d2ac9d02dc8cfcc2bd135626090809a03f3676a6e526a4a7e36d81e6e24f1e4fcdc82a2d4e262a0141c0000f70c29c6"

var realNames = sendstream.Token{From: 12430955273760801581, To: 3878116670628036154, Name: "tank/v/z@berth-point-2"}

func TestATokenOfZFSIsRead(t *testing.T) {
	if got, err := sendstream.ReadToken(tokenOfZFS); err != nil || got != realNames {
		t.Errorf("%+v, %v", got, err)
	}
	moved := realNames
	moved.Name = "tank/berth/berth-copies/pvc-1/3@berth-point-2" // the snapshot has another name by now
	if err := sendstream.CheckToken(tokenOfZFS, moved); err != nil {
		t.Error(err)
	}
}

func TestATokenThatNamesAnotherSnapshotIsRefused(t *testing.T) {
	for what, w := range map[string]sendstream.Token{
		"another target":          {From: realNames.From, To: 7, Name: realNames.Name},
		"another base":            {From: 7, To: realNames.To, Name: realNames.Name},
		"a base where none is":    {To: realNames.To, Name: realNames.Name},
		"a target in other pools": {From: realNames.From, To: realNames.To, Name: "other/v/z@berth-point-2"},
	} {
		if err := sendstream.CheckToken(tokenOfZFS, w); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestATokenIsReadInBothByteOrdersAndRefusedWithAnythingElse(t *testing.T) {
	fields := []zfstest.Field{
		{Name: "object", Value: uint64(1)}, {Name: "offset", Value: uint64(2)}, {Name: "bytes", Value: uint64(3)},
		{Name: "toguid", Value: uint64(4)}, {Name: "toname", Value: "tank/a@b"},
	}
	want := sendstream.Token{To: 4, Name: "tank/a@b"}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if got, err := sendstream.ReadToken(zfstest.Token(order, fields...)); err != nil || got != want {
			t.Errorf("%v: %+v, %v", order, got, err)
		}
	}
	with := func(more ...zfstest.Field) string {
		return zfstest.Token(binary.LittleEndian, append(append([]zfstest.Field{}, fields...), more...)...)
	}
	for what, token := range map[string]string{
		"no token":              "",
		"another version":       "2" + tokenOfZFS[1:],
		"cut":                   tokenOfZFS[:len(tokenOfZFS)-2],
		"longer":                tokenOfZFS + "00",
		"of another length":     strings.Replace(tokenOfZFS, "-120-", "-121-", 1),
		"in capitals":           strings.ToUpper(tokenOfZFS),
		"an option":             "-R",
		"too long":              "1-1-1-" + strings.Repeat("00", 4<<10),
		"raw data":              with(zfstest.Field{Name: "rawok", Value: true}),
		"redacted data":         with(zfstest.Field{Name: "redact_snaps", Value: uint64(1)}),
		"a second target":       with(zfstest.Field{Name: "toguid", Value: uint64(5)}),
		"a number for a flag":   with(zfstest.Field{Name: "embedok", Value: uint64(1)}),
		"no target":             zfstest.Token(binary.LittleEndian, fields[:3]...),
		"a bomb":                zfstest.Token(binary.LittleEndian, append(fields, zfstest.Field{Name: "toname", Value: strings.Repeat("a", 1<<20)})...),
		"a name that is a flag": zfstest.Token(binary.LittleEndian, append(fields[:4:4], zfstest.Field{Name: "toname", Value: true})...),
	} {
		if _, err := sendstream.ReadToken(token); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

var volume = sendstream.Begin{Kind: sendstream.Volume, To: 7, From: 5, Features: 1<<16 | 1<<17 | 1<<22}

func TestTheFirstRecordIsReadInBothByteOrders(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		got, err := sendstream.ReadBegin(zfstest.AppendBegin(nil, order, volume))
		if err != nil || got != volume {
			t.Errorf("%v: %+v, %v", order, got, err)
		}
		if err := got.Check(sendstream.Wanted{Kind: sendstream.Volume, From: 5}); err != nil {
			t.Error(err)
		}
	}
}

func TestBytesThatAreNoFirstRecordAreRefused(t *testing.T) {
	whole := zfstest.AppendBegin(nil, binary.LittleEndian, volume)
	other := append([]byte{3}, whole[1:]...)
	future := append([]byte{}, whole...)
	future[21] = 1
	for what, record := range map[string][]byte{
		"nothing": nil, "a cut record": whole[:311], "zeros": make([]byte, 312), "a record of another kind": other, "forms of data of the future": future,
	} {
		if _, err := sendstream.ReadBegin(record); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAStreamThatWasNotAskedForIsRefused(t *testing.T) {
	wanted := sendstream.Wanted{Kind: sendstream.Volume, From: 5}
	for what, change := range map[string]func(b *sendstream.Begin, w *sendstream.Wanted){
		"a package of streams":       func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Package = true },
		"a stream of a dataset":      func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Kind = sendstream.Filesystem },
		"another base":               func(b *sendstream.Begin, _ *sendstream.Wanted) { b.From = 6 },
		"a stream in full":           func(b *sendstream.Begin, _ *sendstream.Wanted) { b.From = 0 },
		"a difference":               func(_ *sendstream.Begin, w *sendstream.Wanted) { w.From = 0 },
		"no target":                  func(b *sendstream.Begin, _ *sendstream.Wanted) { b.To = 0 },
		"encrypted data":             func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Features |= 1 << 24 },
		"redacted data":              func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Features |= 1 << 21 },
		"deduplicated data":          func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Features |= 1 },
		"holds":                      func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Features |= 1 << 26 },
		"data in the first record":   func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Payload = 8 },
		"a rest":                     func(b *sendstream.Begin, _ *sendstream.Wanted) { b.Features |= 1 << 20 },
		"a whole instead of a rest":  func(_ *sendstream.Begin, w *sendstream.Wanted) { w.Resumed = true },
		"much data in a rest's head": func(b *sendstream.Begin, w *sendstream.Wanted) { b.Features, b.Payload, w.Resumed = 1<<20, 1<<20, true },
	} {
		b, w := volume, wanted
		change(&b, &w)
		if err := b.Check(w); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	rest := volume
	rest.Features, rest.Payload = rest.Features|1<<20, 300
	if err := rest.Check(sendstream.Wanted{Kind: sendstream.Volume, From: 5, Resumed: true}); err != nil {
		t.Error(err)
	}
}

func FuzzBegin(f *testing.F) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(zfstest.AppendBegin(nil, order, volume))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		b, err := sendstream.ReadBegin(record)
		if err == nil && b.Check(sendstream.Wanted{Kind: sendstream.Volume, From: 5}) == nil && (b.Package || b.From != 5 || b.Payload != 0 || b.To == 0) {
			t.Errorf("taken: %+v", b)
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(tokenOfZFS)
	f.Add(zfstest.Token(binary.BigEndian, zfstest.Field{Name: "toguid", Value: uint64(1)}, zfstest.Field{Name: "embedok", Value: true}))
	f.Fuzz(func(t *testing.T, token string) {
		if got, err := sendstream.ReadToken(token); err == nil && len(got.Name) >= 4<<10 {
			t.Errorf("taken: %+v", got)
		}
	})
}

func TestAStreamDiffersUnlessItsFirstRecordIsFollowedByTheLast(t *testing.T) {
	record := func(order binary.ByteOrder, kind uint32) []byte {
		r := make([]byte, sendstream.HeaderSize)
		order.PutUint32(r, kind)
		return r
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		first := zfstest.AppendBegin(nil, order, sendstream.Begin{Kind: sendstream.Filesystem, To: 7, From: 5})
		carrying := append(zfstest.AppendBegin(nil, order, sendstream.Begin{Kind: sendstream.Volume, To: 7, From: 5, Payload: 40}), make([]byte, 40)...)
		for name, test := range map[string]struct {
			stream  []byte
			differs bool
		}{
			"nothing":                         {slices.Concat(first, record(order, 5)), false},
			"nothing, and the first has data": {slices.Concat(carrying, record(order, 5)), false},
			"an object":                       {slices.Concat(first, record(order, 1), record(order, 5)), true},
			"blocks that were freed":          {slices.Concat(first, record(order, 4)), true},
			"data after the first with data":  {slices.Concat(carrying, record(order, 3)), true},
		} {
			if differs, err := sendstream.Differs(bytes.NewReader(test.stream)); differs != test.differs || err != nil {
				t.Errorf("%s, %v: it differs: %v, %v", name, order, differs, err)
			}
			for _, short := range []int{0, sendstream.HeaderSize - 1, len(first), 2*sendstream.HeaderSize - 1} {
				if _, err := sendstream.Differs(bytes.NewReader(test.stream[:short])); !errors.Is(err, provision.ErrInvalid) {
					t.Errorf("%s, %v, ended after %d bytes: %v", name, order, short, err)
				}
			}
		}
	}
	if _, err := sendstream.Differs(bytes.NewReader(make([]byte, 2*sendstream.HeaderSize))); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("bytes that are no stream: %v", err)
	}
}
