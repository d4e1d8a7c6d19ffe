package sendstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// attribute of a command.
type attribute struct {
	kind int
	data []byte
}

func text(kind int, s string) attribute { return attribute{kind, []byte(s)} }

func number(kind int, n uint64) attribute {
	return attribute{kind, binary.LittleEndian.AppendUint64(nil, n)}
}

// says returns a command as a peer may write it.
func says(c command, attributes ...attribute) []byte {
	var body []byte
	for _, a := range attributes {
		body = binary.LittleEndian.AppendUint16(body, uint16(a.kind))
		body = binary.LittleEndian.AppendUint16(body, uint16(len(a.data)))
		body = append(body, a.data...)
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	head = binary.LittleEndian.AppendUint16(head, uint16(c))
	all := append(append(head, 0, 0, 0, 0), body...)
	binary.LittleEndian.PutUint32(all[6:], checksum(all))
	return all
}

func opened() []byte {
	return append([]byte(magic), 1, 0, 0, 0)
}

// full returns a stream in full of some commands.
func full(commands ...[]byte) []byte {
	all := append(opened(), says(cmdSubvolume, text(attrPath, "data"), text(attrUUID, "0123456789abcdef"))...)
	return append(append(all, bytes.Join(commands, nil)...), says(cmdEnd)...)
}

// applied applies a stream to an empty directory beside others.
func applied(t *testing.T, stream []byte, increment bool) (dir string, err error) {
	t.Helper()
	around := t.TempDir()
	dir = filepath.Join(around, "data")
	if err := os.WriteFile(filepath.Join(around, "precious"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	subvolume, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer subvolume.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer writer.Close()
		_, _ = writer.Write(stream)
	}()
	err = Apply(t.Context(), subvolume, reader, increment)
	_ = reader.Close()
	<-written
	if got, err := os.ReadFile(filepath.Join(around, "precious")); err != nil || string(got) != "precious" {
		t.Errorf("the file beside the subvolume holds %q, %v", got, err)
	}
	if entries, err := os.ReadDir(around); err != nil || len(entries) != 2 {
		t.Errorf("beside the subvolume there is %v, %v", entries, err)
	}
	return dir, err
}

func write(path string, at uint64, data string) []byte {
	return says(cmdWrite, text(attrPath, path), number(attrOffset, at), text(attrData, data))
}

func TestAStreamMakesFilesOfAllKinds(t *testing.T) {
	at := append(binary.LittleEndian.AppendUint64(nil, 1e9), 0, 0, 0, 0)
	dir, err := applied(t, full(
		says(cmdDirectory, text(attrPath, "o1")), says(cmdRename, text(attrPath, "o1"), text(attrPathTo, "dir")),
		says(cmdFile, text(attrPath, "dir/o2")), says(cmdRename, text(attrPath, "dir/o2"), text(attrPathTo, "dir/file")),
		write("dir/file", 0, "hello"), write("dir/file", 8, strings.Repeat("\x00", 8)),
		says(cmdLink, text(attrPath, "twin"), text(attrPathLink, "dir/file")),
		says(cmdSymlink, text(attrPath, "link"), text(attrPathLink, "/etc/passwd")),
		says(cmdPipe, text(attrPath, "pipe"), number(attrMode, unix.S_IFIFO|0o600), number(attrDevice, 0)),
		says(cmdTruncate, text(attrPath, "dir/file"), number(attrSize, 12)),
		says(cmdMode, text(attrPath, "dir/file"), number(attrMode, 0o4755)),
		says(cmdTimes, text(attrPath, "link"), attribute{attrAccessed, at}, attribute{attrModified, at}),
		says(cmdMode, text(attrPath, ""), number(attrMode, 0o755)),
	), false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "twin"))
	if err != nil || string(got) != "hello"+strings.Repeat("\x00", 7) {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "dir/file")); err != nil || info.Mode() != 0o755|os.ModeSetuid {
		t.Errorf("the file is %v, %v", info, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the subvolume is %v, %v", info, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// A peer may be hostile. What it can say must stay within the subvolume, and open nothing but files.
func TestAHostileStreamReachesNothingOutside(t *testing.T) {
	for name, commands := range map[string][][]byte{
		"up":                     {write("../precious", 0, "stolen")},
		"an absolute path":       {write("/etc/berth-test", 0, "stolen")},
		"up through a directory": {says(cmdDirectory, text(attrPath, "d")), says(cmdUnlink, text(attrPath, "d/../../precious"))},
		"a link to outside": {
			says(cmdSymlink, text(attrPath, "l"), text(attrPathLink, "../precious")), write("l", 0, "stolen"),
		},
		"a directory that is a link": {
			says(cmdSymlink, text(attrPath, "l"), text(attrPathLink, "..")), says(cmdUnlink, text(attrPath, "l/precious")),
		},
		"the mode through a link": {
			says(cmdSymlink, text(attrPath, "l"), text(attrPathLink, "..")), says(cmdMode, text(attrPath, "l/precious"), number(attrMode, 0)),
		},
		"a file renamed away":      {says(cmdFile, text(attrPath, "f")), says(cmdRename, text(attrPath, "f"), text(attrPathTo, "../f"))},
		"a link to a file outside": {says(cmdLink, text(attrPath, "f"), text(attrPathLink, "../precious"))},
		"the subvolume itself":     {says(cmdRename, text(attrPath, "."), text(attrPathTo, "f"))},
		"a pipe that is opened": {
			says(cmdPipe, text(attrPath, "p"), number(attrMode, unix.S_IFIFO|0o600), number(attrDevice, 0)), write("p", 0, "x"),
		},
		"a device that is opened": {
			says(cmdNode, text(attrPath, "n"), number(attrMode, unix.S_IFCHR|0o600), number(attrDevice, unix.Mkdev(1, 5))), write("n", 0, "x"),
		},
		"a file as a device":            {says(cmdNode, text(attrPath, "n"), number(attrMode, unix.S_IFREG|0o600), number(attrDevice, 0))},
		"data of another subvolume":     {says(cmdFile, text(attrPath, "f")), says(cmdClone, text(attrPath, "f"), number(attrOffset, 0), number(attrCloneLength, 1), number(attrCloneOffset, 0), text(attrCloneUUID, "fedcba9876543210"), text(attrClonePath, "f"))},
		"data of a file outside":        {says(cmdFile, text(attrPath, "f")), says(cmdClone, text(attrPath, "f"), number(attrOffset, 0), number(attrCloneLength, 0), number(attrCloneOffset, 0), text(attrCloneUUID, "0123456789abcdef"), text(attrClonePath, "../precious"))},
		"a second subvolume":            {says(cmdSubvolume, text(attrPath, "x"))},
		"a command of a later kind":     {says(25, text(attrPath, "f"))},
		"a write without an offset":     {says(cmdFile, text(attrPath, "f")), says(cmdWrite, text(attrPath, "f"), text(attrData, "x"))},
		"a write beyond all files":      {says(cmdFile, text(attrPath, "f")), write("f", 1<<63, "x")},
		"an attribute that comes twice": {says(cmdFile, text(attrPath, "f"), text(attrPath, "g"))},
		"something after the end":       {says(cmdEnd)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := applied(t, full(commands...), false); err == nil {
				t.Error("it was applied")
			}
		})
	}
}

func TestAStreamOfAnotherKindIsRefused(t *testing.T) {
	whole := full(says(cmdFile, text(attrPath, "f")))
	later := append([]byte(magic), 2, 0, 0, 0)
	for name, stream := range map[string][]byte{
		"an increment is expected": whole,
		"a later version":          later,
		"no stream":                []byte(strings.Repeat("x", 100)),
		"nothing":                  nil,
	} {
		if _, err := applied(t, stream, name == "an increment is expected"); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAStreamIsRefusedWhereverItIsCutOrDamaged(t *testing.T) {
	stream := full(says(cmdFile, text(attrPath, "f")), write("f", 0, "hello"))
	for at := range stream {
		if _, err := applied(t, stream[:at], false); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("cut at byte %d: %v", at, err)
		}
		damaged := bytes.Clone(stream)
		damaged[at] ^= 0x11
		if _, err := applied(t, damaged, false); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("damaged at byte %d: %v", at, err)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add(full(says(cmdFile, text(attrPath, "f")), write("f", 0, "hello")))
	f.Add(full(says(cmdSymlink, text(attrPath, "l"), text(attrPathLink, "..")), says(cmdUnlink, text(attrPath, "l/precious"))))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for rest := stream; len(rest) > headLength; { // checksums keep a fuzzer out otherwise
			if bytes.HasPrefix(rest, []byte(magic)) && len(rest) > len(magic)+4 {
				rest = rest[len(magic)+4:]
				continue
			}
			end := headLength + int(min(binary.LittleEndian.Uint32(rest), longest))
			if end > len(rest) {
				break
			}
			clear(rest[6:headLength])
			binary.LittleEndian.PutUint32(rest[6:], checksum(rest[:end]))
			rest = rest[end:]
		}
		_, _ = applied(t, stream, false)
	})
}
