package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFramesArriveAsTheyWereSent(t *testing.T) {
	var buffer bytes.Buffer
	w := NewWriter(&buffer)
	long := bytes.Repeat([]byte("x"), 2*Chunk+1)
	if err := w.Write(Started, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stream(Stdout).Write(long); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteJSON(Exited, Result{Code: 3}); err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	var output []byte
	for {
		kind, payload, err := Read(&buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kind)
		if kind == Stdout {
			output = append(output, payload...)
		}
	}
	if got, want := string(func() (b []byte) {
		for _, k := range kinds {
			b = append(b, byte(k))
		}
		return b
	}()), "S111x"; got != want {
		t.Errorf("kinds are %q, want %q", got, want)
	}
	if !bytes.Equal(output, long) {
		t.Errorf("%d bytes of output arrived, want %d", len(output), len(long))
	}
}

func TestBrokenFramesAreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want error
	}{
		"nothing at all is the end":                {"", io.EOF},
		"the connection breaks in the head":        {"1\x00\x00", io.ErrUnexpectedEOF},
		"the connection breaks before the payload": {"1\x00\x00\x00\x05", io.ErrUnexpectedEOF},
		"the connection breaks in the payload":     {"1\x00\x00\x00\x05abc", io.ErrUnexpectedEOF},
		"somebody speaks another protocol":         {"GET / HTTP/1.1\r\n", errTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Read(bytes.NewBufferString(tc.data)); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestFrameThatTheOtherSideWouldRefuseIsNotSent(t *testing.T) {
	var buffer bytes.Buffer
	if err := NewWriter(&buffer).Write(Stdout, make([]byte, MaxPayload+1)); err == nil || buffer.Len() > 0 {
		t.Errorf("got error %v and %d bytes sent", err, buffer.Len())
	}
}
