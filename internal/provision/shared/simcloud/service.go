package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// A cloud that is a process of its own answers by HTTP on a unix socket. Each call is a POST of a question.

// question is what a call asks.
type question struct {
	Node           string        `json:"node"`
	Attach, Detach []shared.Disk `json:",omitempty"`
	Operation      string        `json:"operation,omitempty"`
}

// answer is what the cloud says. Problem is empty if all is well.
type answer struct {
	Operation string             `json:"operation,omitempty"`
	Running   bool               `json:"running,omitempty"`
	Failed    map[string]problem `json:"failed,omitempty"`
	Disks     []string           `json:"disks,omitempty"`
	Problem   *problem           `json:"problem,omitempty"`
}

// problem is an error on its way.
type problem struct {
	Class   string        `json:"class"`
	Message string        `json:"message"`
	After   time.Duration `json:"after,omitempty"`
	// Throttled and Busy are the two kinds of a LaterError.
	Throttled, Busy bool `json:",omitempty"`
}

var classes = map[string]error{
	"Conflict": provision.ErrConflict, "NotFound": provision.ErrNotFound, "NoSpace": provision.ErrNoSpace, "Invalid": provision.ErrInvalid,
	"Unsupported": provision.ErrUnsupported, "Unavailable": provision.ErrUnavailable,
}

func problemOf(err error) *problem {
	later := &shared.LaterError{}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &later):
		return &problem{Message: err.Error(), After: later.After, Throttled: later.Throttled, Busy: !later.Throttled}
	}
	for class, is := range classes {
		if errors.Is(err, is) {
			return &problem{Class: class, Message: err.Error()}
		}
	}
	return &problem{Class: "Unavailable", Message: err.Error()}
}

func (p *problem) err() error {
	switch {
	case p == nil:
		return nil
	case p.Throttled, p.Busy:
		return &shared.LaterError{After: p.After, Throttled: p.Throttled}
	}
	class := classes[p.Class]
	if class == nil {
		class = provision.ErrUnavailable
	}
	return &said{p.Message, class}
}

// said is an error as the cloud has said it.
type said struct {
	message string
	class   error
}

func (e *said) Error() string { return e.message }
func (e *said) Unwrap() error { return e.class }

// The calls of a shared.Cloud, by their paths.
const (
	pathChange   = "/change"
	pathProgress = "/progress"
	pathAttached = "/attached"
)

// Serve answers until ctx ends. It closes the listener.
func Serve(ctx context.Context, l net.Listener, c shared.Cloud) error {
	h := http.NewServeMux()
	for path, call := range map[string]func(ctx context.Context, q question) (answer, error){
		pathChange: func(ctx context.Context, q question) (a answer, err error) {
			a.Operation, err = c.Change(ctx, q.Node, q.Attach, q.Detach)
			return a, err
		},
		pathProgress: func(ctx context.Context, q question) (answer, error) {
			p, err := c.Progress(ctx, q.Node, q.Operation)
			a := answer{Running: p.Running, Failed: map[string]problem{}}
			for disk, err := range p.Failed {
				a.Failed[disk] = *problemOf(err)
			}
			return a, err
		},
		pathAttached: func(ctx context.Context, q question) (a answer, err error) {
			a.Disks, err = c.Attached(ctx, q.Node)
			return a, err
		},
	} {
		h.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			var q question
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			a, err := call(r.Context(), q)
			a.Problem = problemOf(err)
			_ = json.NewEncoder(w).Encode(a) // the client has gone
		})
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: answersWithin}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

const answersWithin = 10 * time.Second

// remote is a cloud that another process serves.
type remote struct{ client *http.Client }

// Dial returns the cloud that a process serves on a unix socket. Each call connects by itself, so the process may
// begin later, or anew.
func Dial(socket string) shared.Cloud {
	return remote{&http.Client{Timeout: answersWithin, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}}
}

func (r remote) ask(ctx context.Context, path string, q question) (a answer, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cloud"+path, bytes.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return answer{}, provision.Unavailable(fmt.Errorf("asking the simulated cloud: %w", err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 256))
		return answer{}, provision.Unavailable(fmt.Errorf("the simulated cloud answers %s: %q", response.Status, why))
	}
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return answer{}, provision.Unavailable(fmt.Errorf("reading the answer of the simulated cloud: %w", err))
	}
	return a, a.Problem.err()
}

// Change implements shared.Cloud.
func (r remote) Change(ctx context.Context, node string, attach, detach []shared.Disk) (string, error) {
	a, err := r.ask(ctx, pathChange, question{Node: node, Attach: attach, Detach: detach})
	return a.Operation, err
}

// Progress implements shared.Cloud.
func (r remote) Progress(ctx context.Context, node, operation string) (shared.Progress, error) {
	a, err := r.ask(ctx, pathProgress, question{Node: node, Operation: operation})
	if err != nil {
		return shared.Progress{}, err
	}
	p := shared.Progress{Running: a.Running, Failed: map[string]error{}}
	for disk, why := range a.Failed {
		p.Failed[disk] = why.err()
	}
	return p, nil
}

// Attached implements shared.Cloud.
func (r remote) Attached(ctx context.Context, node string) ([]string, error) {
	a, err := r.ask(ctx, pathAttached, question{Node: node})
	return a.Disks, err
}
