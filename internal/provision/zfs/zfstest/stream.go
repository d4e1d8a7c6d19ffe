package zfstest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision/zfs/sendstream"
	"berth.dev/berth/internal/run"
)

// A played stream begins with the record of a real one. Then come the length of the whole content, the
// content from where the stream goes on, and a sum of all of it.

// AppendBegin appends the first record of a stream, as a machine of a byte order writes it.
func AppendBegin(to []byte, order binary.ByteOrder, b sendstream.Begin) []byte {
	record := make([]byte, sendstream.HeaderSize)
	order.PutUint32(record[4:], b.Payload)
	order.PutUint64(record[8:], 0x2F5bacbac)
	header := uint64(1)
	if b.Package {
		header = 2
	}
	order.PutUint64(record[16:], header|uint64(b.Features)<<2)
	order.PutUint32(record[32:], uint32(b.Kind))
	order.PutUint64(record[40:], b.To)
	order.PutUint64(record[48:], b.From)
	return append(to, record...)
}

// resuming is the bit of a stream that goes on where another ended.
const resuming = 1 << 20

// Field of a token: a number, a text, or a flag.
type Field struct {
	Name  string
	Value any
}

// Token makes a token, as ZFS does.
func Token(order binary.ByteOrder, fields ...Field) string {
	list := []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if order == binary.ByteOrder(binary.BigEndian) {
		list[1] = 0
	}
	put := func(size int, n uint64) {
		part := make([]byte, 8)
		switch size {
		case 2:
			order.PutUint16(part, uint16(n)) //nolint:gosec // short
		case 4:
			order.PutUint32(part, uint32(n)) //nolint:gosec // short
		default:
			order.PutUint64(part, n)
		}
		list = append(list, part[:size]...)
	}
	for _, f := range fields {
		kind, elements, value := uint64(1), uint64(0), []byte{}
		switch v := f.Value.(type) {
		case uint64:
			kind, elements, value = 8, 1, make([]byte, 8)
			order.PutUint64(value, v)
		case string:
			kind, elements, value = 9, 1, append([]byte(v), 0)
		}
		name := append([]byte(f.Name), 0)
		pad := func(b []byte, after int) []byte { return append(b, make([]byte, -(len(b)+after)&7)...) }
		body := append(pad(name, 16), pad(value, 0)...)
		put(4, uint64(16+len(body)))
		put(2, uint64(len(name)))
		put(2, 0)
		put(4, elements)
		put(4, kind)
		list = append(list, body...)
	}
	put(4, 0)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(list)
	_ = z.Close()
	return fmt.Sprintf("1-%x-%x-%s", crc32.ChecksumIEEE(packed.Bytes()), len(list), hex.EncodeToString(packed.Bytes()))
}

// token of a dataset that was received half; empty for any other.
func (d *Dataset) token(name string) string {
	if !d.half {
		return ""
	}
	fields := []Field{
		{"object", uint64(1)}, {"offset", uint64(len(d.Content))}, {"bytes", uint64(len(d.Content))},
		{"toguid", uint64(d.to)}, {"toname", zpoolOf(name) + "/sent@point"}, //nolint:gosec // guids here are small
	}
	if d.from != 0 {
		fields = append(fields, Field{"fromguid", uint64(d.from)}) //nolint:gosec // guids here are small
	}
	return Token(binary.LittleEndian, append(fields, Field{"compressok", true})...)
}

func (h zfsProgram) send(c run.Command) error {
	stream, err := h.stream(c)
	if err == nil {
		_, err = c.Out.Write(stream)
	}
	return err
}

// stream returns the stream that a command sends.
func (h zfsProgram) stream(c run.Command) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := parse("send", c.Args[1:])
	begin, skip, name, base := sendstream.Begin{Kind: sendstream.Volume}, 0, "", a.flags["-i"]
	if token := a.flags["-t"]; token != "" {
		t, err := sendstream.ReadToken(token)
		if err != nil {
			return nil, err
		}
		begin.Features, begin.From = resuming, t.From
		skip = offsetOf(token)
		name = h.byGUID(int64(t.To)) //nolint:gosec // guids here are small
	} else {
		name = a.operands[0]
	}
	if !strings.Contains(name, "@") {
		return h.headStream(begin, base, name)
	}
	d, s := h.zpools.findSnapshot(name)
	if s == nil {
		return nil, fmt.Errorf("cannot open '%s': dataset does not exist", name)
	}
	guidOf(&s.guid)
	begin.To = uint64(s.guid) //nolint:gosec // guids here are small
	if base != "" {
		_, b := h.zpools.findSnapshot(base)
		if b == nil || !h.before(base, name) {
			return nil, fmt.Errorf("cannot send '%s': not an earlier snapshot from the same fs", name)
		}
		guidOf(&b.guid)
		begin.From = uint64(b.guid) //nolint:gosec // guids here are small
	}
	if d.Volsize == 0 {
		begin.Kind = sendstream.Filesystem
	}
	out := AppendBegin(nil, binary.LittleEndian, begin)
	out = binary.LittleEndian.AppendUint64(out, uint64(s.Volsize))      //nolint:gosec // a size
	out = binary.LittleEndian.AppendUint64(out, uint64(len(s.Content))) //nolint:gosec // a length
	out = append(out, s.Content[min(skip, len(s.Content)):]...)
	return binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out)), nil
}

// headStream returns the stream of the difference between a snapshot and the head that follows it: of its records the
// first, one for what was written, and the last.
func (h zfsProgram) headStream(begin sendstream.Begin, base, name string) ([]byte, error) {
	_, d := h.zpools.find(name)
	_, b := h.zpools.findSnapshot(base)
	switch {
	case d == nil || b == nil:
		return nil, fmt.Errorf("cannot open '%s': dataset does not exist", name)
	case d.Open || d.Mounted || d.Probed:
		return nil, fmt.Errorf("cannot send '%s': target is busy; if a filesystem, it must not be mounted", name)
	}
	begin.To, begin.From = 1, uint64(b.guid) //nolint:gosec // guids here are small
	out := AppendBegin(nil, binary.LittleEndian, begin)
	for kind, is := range []bool{1: d.Content != b.Content, 5: true} {
		if is {
			record := make([]byte, sendstream.HeaderSize)
			binary.LittleEndian.PutUint32(record, uint32(kind)) //nolint:gosec // small
			out = append(out, record...)
		}
	}
	return out, nil
}

// offsetOf reads the offset of a token that was made here: it is the second number of the list.
func offsetOf(token string) int {
	packed, _ := hex.DecodeString(token[strings.LastIndexByte(token, '-')+1:])
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return 0
	}
	list, _ := io.ReadAll(z)
	i := bytes.Index(list, []byte("offset\x00"))
	return int(binary.LittleEndian.Uint64(list[i+8:])) //nolint:gosec // a length
}

// byGUID returns the name of the snapshot of a guid; empty if there is none.
func (h zfsProgram) byGUID(guid int64) string {
	for _, z := range h.zpools {
		for name, d := range z.Datasets {
			for at, s := range d.Snapshots {
				if s.guid == guid && d.Props["volmode"] != "none" || s.guid == guid && strings.Contains(name, "berth-copies") {
					return name + "@" + at
				}
			}
		}
	}
	return ""
}

// before says whether a snapshot is an ancestor of another.
func (h zfsProgram) before(base, target string) bool {
	of, at, _ := strings.Cut(target, "@")
	for {
		_, d := h.zpools.find(of)
		if d == nil || d.Snapshots[at] == nil {
			return false
		}
		if name, ok := strings.CutPrefix(base, of+"@"); ok {
			s := d.Snapshots[name]
			return s != nil && s.TXG < d.Snapshots[at].TXG
		}
		if d.Origin == base {
			return true
		}
		of, at, _ = strings.Cut(d.Origin, "@")
	}
}

// receive receives a stream as ZFS does: into a new dataset, or into one that was received half.
func (h zfsProgram) receive(c run.Command) error {
	a := parse("receive", c.Args[1:])
	record, sum := make([]byte, sendstream.HeaderSize+16), crc32.NewIEEE()
	in := io.TeeReader(c.In, sum)
	if _, err := io.ReadFull(in, record); err != nil {
		return errors.New("cannot receive: failed to read from stream")
	}
	begin, err := sendstream.ReadBegin(record[:sendstream.HeaderSize])
	if err != nil {
		return err
	}
	name, at, _ := strings.Cut(a.operands[0], "@")
	volsize := int64(binary.LittleEndian.Uint64(record[sendstream.HeaderSize:])) //nolint:gosec // checked by the sum
	have, err := h.open(a, name, begin, volsize)
	if err != nil {
		return err
	}
	whole := int64(binary.LittleEndian.Uint64(record[sendstream.HeaderSize+8:])) //nolint:gosec // checked
	part, err := io.ReadAll(io.LimitReader(in, max(whole-int64(have), 0)))
	want, tail := sum.Sum32(), make([]byte, 4)
	cut := err != nil || int64(have+len(part)) != whole
	if !cut {
		_, err = io.ReadFull(c.In, tail)
		cut = err != nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.txg++
	_, d := h.zpools.find(name)
	if d == nil {
		return errors.New("cannot receive: dataset is gone")
	}
	if !cut && binary.LittleEndian.Uint32(tail) != want {
		return errors.New("cannot receive: checksum mismatch") // real ones have a sum for each record
	}
	if d.Content += string(part); cut {
		return errors.New("cannot receive: incomplete stream. Partially received snapshot is saved")
	}
	d.half = false
	d.Snapshots[at] = &Snapshot{Props: map[string]string{}, Volsize: d.Volsize, Content: d.Content, TXG: h.txg, guid: int64(begin.To)} //nolint:gosec // guids here are small
	return nil
}

// open makes the dataset that a stream is received into, or finds it, and returns how much it holds.
func (h zfsProgram) open(a arguments, name string, begin sendstream.Begin, volsize int64) (have int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	z, d := h.zpools.find(name)
	if begin.Features&resuming != 0 {
		if d == nil || !d.half || d.to != int64(begin.To) { //nolint:gosec // guids here are small
			return 0, errors.New("cannot receive resume stream: there is none")
		}
		return len(d.Content), nil
	}
	if err := z.absent(name); err != nil {
		return 0, err
	}
	origin := a.props["origin"]
	if _, s := h.zpools.findSnapshot(origin); begin.From != 0 && (s == nil || s.guid != int64(begin.From)) { //nolint:gosec // guids here are small
		return 0, errors.New("cannot receive: most recent snapshot does not match incremental source")
	}
	d = filesystem()
	d.Props = a.props
	delete(d.Props, "origin")
	d.Volsize, d.half, d.to, d.from, d.Origin = volsize, true, int64(begin.To), int64(begin.From), origin //nolint:gosec // guids here are small
	z.Datasets[name] = d
	return 0, nil
}

// promote has a clone take its origin over, with the snapshots before that.
func (h zfsProgram) promote(z *Zpool, name string) error {
	clone := z.Datasets[name]
	if clone == nil || clone.Origin == "" {
		return fmt.Errorf("cannot promote '%s': not a cloned filesystem", name)
	}
	of, s := h.zpools.findSnapshot(clone.Origin)
	origin, at, _ := strings.Cut(clone.Origin, "@")
	for _, moved := range slices.Collect(maps.Keys(of.Snapshots)) {
		if of.Snapshots[moved].TXG > s.TXG {
			continue
		}
		clone.Snapshots[moved] = of.Snapshots[moved]
		delete(of.Snapshots, moved)
		for _, other := range z.Datasets {
			if other.Origin == origin+"@"+moved {
				other.Origin = name + "@" + moved
			}
		}
	}
	clone.Origin, of.Origin = of.Origin, name+"@"+at
	return nil
}

// get prints how much was written since a snapshot, or the properties that were set on a dataset.
func (h zfsProgram) get(args []string) ([]byte, error) {
	what, name := args[len(args)-2], args[len(args)-1]
	_, d := h.zpools.find(name)
	if d == nil {
		return nil, fmt.Errorf("cannot open '%s': dataset does not exist", name)
	}
	if since, ok := strings.CutPrefix(what, "written@"); ok {
		_, s := h.zpools.findSnapshot(since)
		if s == nil {
			return nil, fmt.Errorf("'%s': no such snapshot", since)
		}
		written := 0
		switch {
		case d.Content != s.Content:
			written = 4096
		case d.headed:
			written = 1024
		}
		return []byte(strconv.Itoa(written) + "\n"), nil
	}
	var out strings.Builder
	for _, k := range slices.Sorted(maps.Keys(d.Props)) {
		fmt.Fprintf(&out, "%s\t%s\n", k, d.Props[k])
	}
	fmt.Fprintf(&out, "refreservation\t%d\n", d.Refreservation)
	return []byte(out.String()), nil
}
