package sendstream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"berth.dev/berth/internal/provision"
)

// The form of a stream: a magic text and a version, then commands, each with a head of its length,
// its number and its checksum, and attributes.
const (
	magic      = "btrfs-stream\x00"
	version    = 1
	headLength = 10
	longest    = 64 << 10 // of a command
)

// command is the number of a command.
type command uint16

// The commands of version 1.
const (
	cmdSubvolume   command = 1
	cmdSnapshot    command = 2
	cmdFile        command = 3
	cmdDirectory   command = 4
	cmdNode        command = 5
	cmdPipe        command = 6
	cmdSocket      command = 7
	cmdSymlink     command = 8
	cmdRename      command = 9
	cmdLink        command = 10
	cmdUnlink      command = 11
	cmdRemove      command = 12
	cmdSetXattr    command = 13
	cmdRemoveXattr command = 14
	cmdWrite       command = 15
	cmdClone       command = 16
	cmdTruncate    command = 17
	cmdMode        command = 18
	cmdOwner       command = 19
	cmdTimes       command = 20
	cmdEnd         command = 21
)

// The attributes of commands that are used.
const (
	attrUUID        = 1
	attrSize        = 4
	attrMode        = 5
	attrUID         = 6
	attrGID         = 7
	attrDevice      = 8
	attrModified    = 10
	attrAccessed    = 11
	attrXattrName   = 13
	attrXattrData   = 14
	attrPath        = 15
	attrPathTo      = 16
	attrPathLink    = 17
	attrOffset      = 18
	attrData        = 19
	attrCloneUUID   = 20
	attrClonePath   = 22
	attrCloneOffset = 23
	attrCloneLength = 24
	attrLast        = 24
)

// message is a command with its attributes. They are valid until the next one is read.
type message struct {
	command command
	attr    [attrLast + 1][]byte
}

// reader reads the commands of a stream.
type reader struct {
	r   *bufio.Reader
	buf []byte
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: the stream is damaged: %s", provision.ErrInvalid, fmt.Sprintf(format, args...))
}

// ended turns the end of the input within a stream into an error of that class.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the stream ends too early", provision.ErrInvalid)
	}
	return err
}

// begin reads the head of a stream.
func begin(from io.Reader) (*reader, error) {
	r := &reader{r: bufio.NewReaderSize(from, 4*longest), buf: make([]byte, headLength+longest)}
	head := r.buf[:len(magic)+4]
	if _, err := io.ReadFull(r.r, head); err != nil {
		return nil, ended(err)
	}
	if string(head[:len(magic)]) != magic {
		return nil, damaged("it is no stream of btrfs")
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != version {
		return nil, damaged("it has version %d, not %d", v, version)
	}
	return r, nil
}

// castagnoli is the polynomial of a command's checksum, which begins with zero and is not inverted.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return ^crc32.Update(^uint32(0), castagnoli, b) }

// next reads a command.
func (r *reader) next(m *message) error {
	head := r.buf[:headLength]
	if _, err := io.ReadFull(r.r, head); err != nil {
		return ended(err)
	}
	length := binary.LittleEndian.Uint32(head)
	if length > longest {
		return damaged("a command of %d bytes", length)
	}
	all := r.buf[:headLength+int(length)]
	if _, err := io.ReadFull(r.r, all[headLength:]); err != nil {
		return ended(err)
	}
	sum := binary.LittleEndian.Uint32(head[6:])
	clear(head[6:])
	if got := checksum(all); got != sum {
		return damaged("a command has checksum %08x, not %08x", got, sum)
	}
	*m = message{command: command(binary.LittleEndian.Uint16(head[4:]))}
	return m.parse(all[headLength:])
}

// parse reads the attributes of a command.
func (m *message) parse(b []byte) error {
	for len(b) > 0 {
		if len(b) < 4 {
			return damaged("an attribute is cut off")
		}
		kind, length := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if b = b[4:]; length > len(b) {
			return damaged("an attribute of %d bytes is cut off", length)
		}
		if kind == 0 || kind > attrLast || m.attr[kind] != nil {
			return damaged("attribute %d", kind)
		}
		m.attr[kind], b = b[:length:length], b[length:]
	}
	return nil
}

// number returns an attribute of eight bytes.
func (m *message) number(kind int) (uint64, error) {
	if len(m.attr[kind]) != 8 {
		return 0, damaged("command %d lacks number %d", m.command, kind)
	}
	return binary.LittleEndian.Uint64(m.attr[kind]), nil
}

// numbers returns several such attributes.
func (m *message) numbers(kinds ...int) ([]uint64, error) {
	all := make([]uint64, len(kinds))
	for i, kind := range kinds {
		var err error
		if all[i], err = m.number(kind); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// end returns an error if something follows the last command.
func (r *reader) end() error {
	switch _, err := r.r.ReadByte(); {
	case err == nil:
		return damaged("something follows its end")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}
