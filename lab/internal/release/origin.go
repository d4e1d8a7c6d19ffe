package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// origin is the source of the files of a release.
type origin interface {
	// open returns a file's content, or [fs.ErrNotExist].
	open(ctx context.Context, name string) (io.ReadCloser, error)
	// of returns the name of a file of the origin, for messages.
	of(name string) string
}

func newOrigin(location string) (origin, error) {
	if strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://") {
		base, err := url.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("address of the release: %w", err)
		}
		return server{base: base, client: &http.Client{Transport: transport()}}, nil
	}
	info, err := os.Stat(location)
	if err != nil {
		return nil, fmt.Errorf("directory of the release: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is neither a directory nor an address that begins with https://", location)
	}
	return directory(location), nil
}

// transport returns a transport that gives up on a server that does not answer. A large
// download may take as long as it needs.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	return t
}

type directory string

func (d directory) of(name string) string { return filepath.Join(string(d), name) }

func (d directory) open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(d.of(name))
}

type server struct {
	base   *url.URL
	client *http.Client
}

func (s server) of(name string) string { return s.base.JoinPath(name).String() }

func (s server) open(ctx context.Context, name string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.of(name), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.Body, nil
	case http.StatusNotFound:
		err = fs.ErrNotExist
	default:
		err = errors.New(resp.Status)
	}
	resp.Body.Close()
	return nil, fmt.Errorf("getting %s: %w", s.of(name), err)
}
