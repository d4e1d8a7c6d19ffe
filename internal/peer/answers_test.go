package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/replicate/cert"
)

func TestWhoIsAnsweredWhat(t *testing.T) {
	for name, tc := range map[string]struct {
		asker, path, volume string
		change              func(*Server)
		want                string // empty if it is answered
	}{
		"a copy":                             {asker: "beta", path: pathCopy, volume: "v"},
		"a copy of which the asker has none": {asker: "stranger", path: pathCopy, volume: "v", want: `answers 403: "only nodes with a replica`},
		"a copy that cannot be looked at":    {asker: "beta", path: pathCopy, volume: "w", want: `answers 503: "the copy could not be looked at`},
		"a copy, of a process without":       {asker: "beta", path: pathCopy, volume: "v", change: func(s *Server) { s.Copies = nil }, want: "answers 404"},
		"the contact":                        {asker: "beta", path: pathContact},
		"the contact, of a process without":  {asker: "beta", path: pathContact, change: func(s *Server) { s.Contact = nil }, want: "answers 404"},
		"a probe":                            {asker: cert.Controllers, path: pathProbe},
		"a probe, for a node":                {asker: "beta", path: pathProbe, want: "answers 403"},
		"a probe, of a process without":      {asker: cert.Controllers, path: pathProbe, change: func(s *Server) { s.Reach = nil }, want: "answers 404"},
		"beats, for a node":                  {asker: "beta", path: pathBeats, want: "answers 403"},
		"an unknown question":                {asker: cert.Controllers, path: "/v2", want: "answers 404"},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(ctx context.Context, n *network) {
				n.serve(ctx, "alpha", "alpha", tc.change)
				r, err := n.client(tc.asker).send(ctx, "alpha", tc.path, url.Values{"volume": {tc.volume}, "node": {"alpha"}})
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("it is answered %v", err)
				}
				if err == nil {
					_ = r.Body.Close()
					if kind := r.Header.Get("Content-Type"); kind != "application/json" {
						t.Errorf("the answer is %q", kind)
					}
				}
			})
		})
	}
}

func TestARequestThatIsNoQuestionEndsItsConnection(t *testing.T) {
	for name, request := range map[string]string{
		"a body":         "GET /v1/alive HTTP/1.1\r\nHost: alpha\r\nContent-Length: 9\r\n\r\n",
		"another method": "POST /v1/alive HTTP/1.1\r\nHost: alpha\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(ctx context.Context, n *network) {
				n.serve(ctx, "alpha", "alpha", nil)
				conn, err := n.client("beta").dial(ctx, "", cert.Name("alpha")+":443")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Write([]byte(request)); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				answer, _ := io.ReadAll(conn) // until the server closes it
				if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || time.Since(begun) > answerWithin+time.Second {
					t.Errorf("after %v: %q", time.Since(begun), answer)
				}
			})
		})
	}
}

func TestAQuestionWithoutAConnectionIsNotAnswered(t *testing.T) {
	w := httptest.NewRecorder()
	(&Server{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, pathAlive, http.NoBody))
	if w.Code != http.StatusForbidden {
		t.Errorf("it is answered %d", w.Code)
	}
}

func TestServingFailsUnlessItIsCalledOff(t *testing.T) {
	for name, tc := range map[string]struct {
		ends  func(cancel func(), l net.Listener)
		fails bool
	}{
		"it is called off":                           {func(cancel func(), _ net.Listener) { cancel() }, false},
		"the listener fails":                         {func(_ func(), l net.Listener) { _ = l.Close() }, true},
		"the listener fails after it was called off": {func(cancel func(), l net.Listener) { cancel(); _ = l.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := bufconn.Listen(1 << 10)
				s := &Server{Identity: n.identity("alpha"), Clock: clock.RealClock{}}
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(ctx, l) }()
				synctest.Wait()
				tc.ends(cancel, l)
				if err := <-ended; (err != nil) != tc.fails {
					t.Error(err)
				}
			})
		})
	}
}

func TestConnectionsThatAreTooManyAreClosedAtOnceAndOthersAreTakenOnceTheyEnd(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		stranger := n.client("stranger")
		for range 2 {
			for i := range maxConnections + 3 {
				conn, err := stranger.connect(ctx, "", "alpha")
				if err != nil {
					t.Fatal(err)
				}
				if i < maxConnections {
					continue
				}
				begun := time.Now()
				if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(begun) > 0 {
					t.Errorf("connection %d ends after %v: %v", i, time.Since(begun), err)
				}
			}
			if n.client("beta").Alive(ctx, "alpha") {
				t.Error("there are more connections than may be")
			}
			time.Sleep(handshakeWithin + time.Second) //nolint:forbidigo // virtual time
		}
		for i := range maxConnections {
			conn, err := stranger.connect(ctx, "", "alpha")
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if i < maxConnections-1 {
				continue
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(begun) < time.Second {
				t.Errorf("connections that have ended are counted: connection %d ends after %v: %v", i, time.Since(begun), err)
			}
		}
	})
}

func TestAConnectionCountsOnceHoweverManyQuestionsItHas(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		c := n.client("beta")
		for i := range maxAtOnce + 2 { // nor is a client ever out of turns
			if len(c.Contacts(ctx, []string{"alpha"})) != 1 {
				t.Fatalf("question %d is not answered", i)
			}
		}
		if n.called("alpha") != 1 {
			t.Errorf("it has called %d times", n.called("alpha"))
		}
	})
}

func TestAQuestionThatGetsNoTurnIsNotAsked(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		c := n.client("beta")
		for range maxAtOnce {
			c.atOnce <- struct{}{}
		}
		begun := time.Now()
		if got := c.Contacts(ctx, []string{"alpha"}); len(got) > 0 || time.Since(begun) != askWithin || n.called("alpha") > 0 {
			t.Errorf("after %v it got %v, and called %d times", time.Since(begun), got, n.called("alpha"))
		}
	})
}

// called is how often a node was called.
func (n *network) called(node string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[node]
}

// says lets a node answer each request with a text, and end the connection if that says so.
func (n *network) says(ctx context.Context, at, text string) {
	d := door{bufconn.Listen(64 << 10)}
	n.mu.Lock()
	n.at[at] = d
	n.mu.Unlock()
	identity := n.identity(at)
	identity.Protocol = cert.Questions
	context.AfterFunc(ctx, func() { _ = d.Close() })
	go func() {
		for {
			raw, err := d.Accept()
			if err != nil {
				return
			}
			go func() {
				conn := tls.Server(raw, identity.Server())
				defer conn.Close()
				requests := bufio.NewReader(conn)
				for closes := false; !closes; closes = strings.Contains(text, "Connection: close") {
					if _, err := http.ReadRequest(requests); err != nil {
						return
					}
					_, _ = io.WriteString(conn, text)
				}
			}()
		}
	}()
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	head := func(code string, length int) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n", code, length)
	}
	for name, tc := range map[string]struct{ answer, want string }{
		"an answer":                {head("200 OK", 2) + "\r\n{}", ""},
		"one that is too long":     {head("200 OK", 2*maxAnswer) + "\r\n{}" + strings.Repeat(" ", 2*maxAnswer-2), "is longer than 1048576 bytes"},
		"the longest":              {head("200 OK", maxAnswer) + "\r\n{}" + strings.Repeat(" ", maxAnswer-2), ""},
		"one that is cut off":      {head("200 OK", 9) + "Connection: close\r\n\r\n{}", "unexpected EOF"},
		"one that is no JSON":      {head("200 OK", 1) + "\r\n{", "reading the answer of node alpha"},
		"a refusal":                {head("503 Service Unavailable", 4) + "\r\nbusy", `answers 503: "busy"`},
		"one that leads elsewhere": {head("307 Temporary Redirect", 0) + "Location: https://" + cert.Name("beta") + pathAlive + "\r\n\r\n", "answers 307"},
		"a head that is too long":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 2*maxHead) + "\r\n\r\n{}", "asking node alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(ctx context.Context, n *network) {
				n.says(ctx, "alpha", tc.answer)
				n.serve(ctx, "beta", "beta", nil)
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				c := n.client("gamma")
				err := c.get(ctx, "alpha", pathAlive, nil, &struct{}{})
				for range 5 { // more than connections may be open at a time
					if again := c.get(ctx, "alpha", pathAlive, nil, &struct{}{}); fmt.Sprint(again) != fmt.Sprint(err) {
						t.Errorf("asked again: %v", again)
					}
				}
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the error is %v", err)
				}
				if n.called("beta") > 0 {
					t.Error("another node was asked")
				}
			})
		})
	}
}

func TestANodeThatCannotBeCalledDoesNotAnswer(t *testing.T) {
	away := errors.New("no such thing")
	for name, tc := range map[string]struct {
		node   string
		change func(c *Client)
		want   string
	}{
		"its address is not known": {"alpha", func(c *Client) {
			c.address = func(context.Context, string) (string, error) { return "", away }
		}, "finding the address of node alpha: no such thing"},
		"no authority is known": {"alpha", func(c *Client) { c.identity.Source = rootless{c.identity.Source} }, "reading the authorities of nodes"},
		"it does not take a call": {"alpha", func(c *Client) {
			c.connect = func(context.Context, string, string) (net.Conn, error) { return nil, away }
		}, "no such thing"},
		"its name is none":            {"no/name", func(*Client) {}, "invalid URL escape"},
		"its name cannot be a node's": {"a_b", func(*Client) {}, "is no node's name below"},
		"it has another's name":       {"liar", func(*Client) {}, "certificate is valid for"},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(ctx context.Context, n *network) {
				n.serve(ctx, "alpha", "alpha", nil)
				n.serve(ctx, "liar", "beta", nil)
				c := n.client("gamma")
				tc.change(c)
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				begun := time.Now()
				_, err := c.send(ctx, tc.node, pathAlive, nil)
				if err == nil || !strings.Contains(err.Error(), tc.want) || time.Since(begun) > 0 {
					t.Errorf("after %v: %v", time.Since(begun), err)
				}
			})
		})
	}
}

type rootless struct{ cert.Source }

func (rootless) Roots() (*x509.CertPool, error) { return nil, errors.New("no authorities") }

func TestANodeThatIsFollowedNoMoreIsForgotten(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		for _, node := range []string{"alpha", "beta"} {
			n.serve(ctx, node, node, nil)
		}
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Clock: clock.RealClock{}}
		for range 3 { // as often as the list of nodes is read
			b.Follow(ctx, []string{"alpha", "beta"})
		}
		time.Sleep(10 * Beat) //nolint:forbidigo // virtual time
		if n.called("alpha") != 1 || !b.Alive("alpha") {
			t.Errorf("it has called %d times", n.called("alpha"))
		}
		b.Follow(ctx, []string{"beta"})
		for range 3 {
			if b.Alive("alpha") {
				t.Error("a node that is not followed is alive")
			}
			time.Sleep(Beat) //nolint:forbidigo // virtual time
		}
		if got := b.others("gamma"); len(got) != 1 || got[0] != "beta" {
			t.Errorf("asked would be %v", got)
		}
	})
}

func TestWhatAGuardSaidAboutANodeIsForgottenWithTheNode(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "guard of alpha", "alpha", nil)
		n.serve(ctx, "beta", "beta", func(s *Server) { s.Reach = func(context.Context, string) bool { return true } })
		guards := n.client(cert.Controllers)
		guards.address = func(_ context.Context, node string) (string, error) { return "guard of " + node, nil }
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Guards: guards, Clock: clock.RealClock{}}
		b.Follow(ctx, []string{"alpha", "beta"})
		time.Sleep(10 * Beat) //nolint:forbidigo // virtual time
		if !b.Alive("alpha") {
			t.Fatal("its guard does not count")
		}
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 1 || !got["controller-0"] {
			t.Errorf("while its guard answers, witnesses are %v", got)
		}
		b.Follow(ctx, []string{"beta"})
		b.Follow(ctx, []string{"alpha", "beta"})
		if b.Alive("alpha") {
			t.Error("it is alive by what was before")
		}
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 1 {
			t.Errorf("witnesses are %v", got)
		}
	})
}

func TestUpToEightNodesWhoseBeatsComeAreAskedAboutAnother(t *testing.T) {
	b := &Beats{Clock: clock.RealClock{}, heard: map[string]time.Time{}}
	for node := range strings.SplitSeq("abcdefghijkl", "") {
		b.heard[node] = time.Now()
	}
	b.heard["e"] = time.Now().Add(-2 * broken)
	for suspect, want := range map[string]string{"c": "d f g h i j k l", "k": "l a b c d f g h", "z": "a b c d f g h i"} {
		if got := strings.Join(b.others(suspect), " "); got != want {
			t.Errorf("about %s asked are %s, want %s", suspect, got, want)
		}
	}
}

func TestWhatOthersSaidLongAgoIsNoWord(t *testing.T) {
	b := &Beats{Name: "c", Clock: clock.RealClock{}, follow: map[string]context.CancelFunc{"alpha": func() {}}}
	for age, want := range map[time.Duration]int{recent - time.Second: 2, recent + time.Second: 1} {
		b.said = map[string]said{"alpha": {at: time.Now().Add(-age), votes: b.Witnesses(t.Context(), "alpha")[:1]}}
		if got := b.Witnesses(t.Context(), "alpha"); len(got) != want {
			t.Errorf("after %v: %v", age, got)
		}
	}
}
