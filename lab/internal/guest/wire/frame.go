package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Kind says what a frame carries.
type Kind byte

// A session is one connection. The client opens it with Start; the guest
// answers Started, or closes the connection if the token is wrong. Then both
// stream until the guest sends Exited. A client that goes away ends the
// program it started.
const (
	Start   Kind = 's' // client: Request as JSON
	Started Kind = 'S' // guest: empty
	Stdin   Kind = '0' // client: input; an empty frame is its end
	Stdout  Kind = '1' // guest
	Stderr  Kind = '2' // guest
	Resize  Kind = 'w' // client: Window as JSON
	Taken   Kind = 'a' // guest: the program took one frame of input; empty
	Exited  Kind = 'x' // guest: Result as JSON
)

// Request is a program to run. An empty Argv runs nothing and succeeds.
type Request struct {
	Token  string   `json:"token"`
	Argv   []string `json:"argv,omitempty"`
	Env    []string `json:"env,omitempty"` // added to the guest's own
	Dir    string   `json:"dir,omitempty"`
	Window *Window  `json:"window,omitempty"` // set: run on a terminal of this size
}

// Window is the size of a terminal in characters.
type Window struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Result says how a program ended: its exit code, or 128 plus the number of the
// signal that ended it, 127 if it was not found, 126 if it could not be run.
type Result struct {
	Code int `json:"code"`
}

// MaxPayload bounds the payload of a frame in bytes, so that a peer that speaks another
// protocol is noticed early.
const MaxPayload = 1 << 20

// InputWindow is how many frames of input a client may send before the program has
// taken the first of them. So a guest can always read on, and it notices a client
// that goes away even while the program does not read its input.
const InputWindow = 16

// Chunk is the size in bytes of the frames that streams are cut into.
const Chunk = 32 << 10

var errTooLong = errors.New("frame is longer than the protocol allows")

// Writer writes frames. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one frame.
func (w *Writer) Write(kind Kind, payload []byte) error {
	if len(payload) > MaxPayload {
		return errTooLong
	}
	frame := make([]byte, 5, 5+len(payload))
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(append(frame, payload...))
	return err
}

// WriteJSON writes one frame with v as its payload.
func (w *Writer) WriteJSON(kind Kind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding frame: %w", err)
	}
	return w.Write(kind, payload)
}

// Stream returns a writer whose data goes out as frames of one kind.
func (w *Writer) Stream(kind Kind) io.Writer { return stream{w, kind} }

type stream struct {
	w    *Writer
	kind Kind
}

func (s stream) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), Chunk)
		if err := s.w.Write(s.kind, p[:n]); err != nil {
			return written, err
		}
		written, p = written+n, p[n:]
	}
	return written, nil
}

// Read reads one frame. The end of the stream between frames is [io.EOF],
// inside one [io.ErrUnexpectedEOF].
func Read(r io.Reader) (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > MaxPayload {
		return 0, nil, errTooLong
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return Kind(head[0]), payload, nil
}
