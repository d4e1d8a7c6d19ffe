package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/replicate/cert"
)

const (
	// Beat is the time between two beats.
	Beat = time.Second

	handshakeWithin = 5 * time.Second // the handshake, and the head of a request
	answerWithin    = 5 * time.Second
	idleFor         = 2 * time.Minute
	maxHead         = 8 << 10
	maxConnections  = 512 // of all peers together
	maxOfPeer       = 16  // of one peer, and of all controllers together: each uses up to 4
)

// Copies are the copies of this node.
type Copies interface {
	// Peer returns this node's own answer about its copy of a volume, gathered now, if the asker may
	// know of it: a node may that has a replica in the record, and a controller, whose name is
	// cert.Controllers. Confirmed of the answer is for this asker. A copy that does not exist is an
	// answer, too.
	Peer(ctx context.Context, volume, asker string) (ownership.Peer, bool, error)
}

// Server answers questions. A nil field is a question that this process does not answer.
type Server struct {
	Identity cert.Identity
	Copies   Copies
	// Contact returns for how long this node has had no answer to a renewal of its lease.
	Contact func() time.Duration
	// Reach tells whether a node answers this one now.
	Reach func(ctx context.Context, node string) bool
	Clock clock.WithTicker
	Log   logr.Logger

	mu    sync.Mutex
	peers map[string]int
}

// Serve answers until ctx ends. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	identity := s.Identity
	identity.Protocol = cert.Questions
	h := &http.Server{
		Handler: s, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: handshakeWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHead,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ErrorLog: log.New(complaints{s.Log}, "", 0),
	}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	err := h.Serve(&bounded{Listener: l, s: s, config: identity.Server()})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// ServeHTTP answers one question.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connectionKey{}).(*secured)
	if c == nil {
		http.Error(w, "who asks is not known", http.StatusForbidden)
		return
	}
	asker, err := cert.PeerOf(c.ConnectionState(), cert.Questions)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if !s.claim(c, asker) {
		w.Header().Set("Connection", "close")
		http.Error(w, "you have too many connections", http.StatusTooManyRequests)
		return
	}
	conn := http.NewResponseController(w)
	if r.Method != http.MethodGet || r.ContentLength != 0 {
		_ = conn.SetReadDeadline(time.Now().Add(answerWithin)) // net/http reads what is left of a body
		w.Header().Set("Connection", "close")
		http.Error(w, "questions are asked by GET, and have no body", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	_ = conn.SetWriteDeadline(time.Now().Add(answerWithin))
	s.answer(ctx, w, r, asker)
}

func (s *Server) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, asker string) {
	q := r.URL.Query()
	switch path := r.URL.Path; {
	case path == pathAlive:
		s.say(w, struct{}{})
	case path == pathCopy && s.Copies != nil:
		p, may, err := s.Copies.Peer(ctx, q.Get("volume"), asker)
		switch {
		case err != nil:
			s.Log.Error(err, "a peer asked for a copy, and there is no answer", "peer", asker)
			http.Error(w, "the copy could not be looked at", http.StatusServiceUnavailable)
		case !may:
			http.Error(w, "only nodes with a replica of the volume may ask", http.StatusForbidden)
		default:
			s.say(w, p)
		}
	case path == pathContact && s.Contact != nil:
		s.say(w, contact{SinceRenewal: s.Contact()})
	case (path == pathProbe || path == pathBeats) && asker != cert.Controllers:
		http.Error(w, "only controllers may ask", http.StatusForbidden)
	case path == pathProbe && s.Reach != nil:
		s.say(w, probe{Alive: s.Reach(ctx, q.Get("node"))})
	case path == pathBeats:
		s.beat(r.Context(), w) //nolint:contextcheck // beats last longer than an answer may take
	default:
		http.Error(w, "this process does not answer that", http.StatusNotFound)
	}
}

func (s *Server) say(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.Log.V(1).Info("a peer did not take its answer", "err", err.Error())
	}
}

// beat sends a line each second, until the peer does not take one in time.
func (s *Server) beat(ctx context.Context, w http.ResponseWriter) {
	out := http.NewResponseController(w)
	ticker := s.Clock.NewTicker(Beat)
	defer ticker.Stop()
	for {
		_ = out.SetWriteDeadline(time.Now().Add(answerWithin))
		if _, err := w.Write([]byte("{}\n")); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// claim counts the connection as the asker's. It is one of few.
func (s *Server) claim(c *secured, asker string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.of == asker {
		return true
	}
	if s.peers == nil {
		s.peers = map[string]int{}
	}
	if s.peers[asker] >= maxOfPeer {
		return false
	}
	s.peers[asker]++
	c.of = asker
	return true
}

// release is the end of a connection.
func (s *Server) release(c *secured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.of != "" {
		s.peers[c.of]--
	}
}

// complaints are those of net/http. Strangers cause most of them.
type complaints struct{ log logr.Logger }

func (c complaints) Write(text []byte) (int, error) {
	c.log.V(1).Info("a connection failed", "why", string(text))
	return len(text), nil
}

type connectionKey struct{}

// secured is a connection whose handshake is made by the first read. net/http must not know that it is TLS:
// it would take the name of the protocol for one that it has to switch to.
type secured struct {
	*tls.Conn
	b    *bounded
	once sync.Once
	// of is the peer whose connection it is, empty before its first question. The server's lock guards it.
	of string
}

// bounded closes connections that are too many, instead of letting them wait.
type bounded struct {
	net.Listener
	s      *Server
	config *tls.Config
	mu     sync.Mutex
	open   int
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		full := b.open >= maxConnections
		if !full {
			b.open++
		}
		b.mu.Unlock()
		if full {
			_ = c.Close()
			continue
		}
		_ = c.SetWriteDeadline(time.Now().Add(handshakeWithin)) // net/http bounds the reads
		return &secured{Conn: tls.Server(c, b.config), b: b}, nil
	}
}

func (c *secured) Close() error {
	c.once.Do(func() {
		c.b.mu.Lock()
		c.b.open--
		c.b.mu.Unlock()
		c.b.s.release(c)
	})
	return c.Conn.Close()
}
