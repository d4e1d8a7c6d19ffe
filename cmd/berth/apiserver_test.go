package main

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// pipes is a network in memory: each connection that is dialled is one that the server accepts.
type pipes struct {
	accepted chan net.Conn
	ended    chan struct{}
	end      sync.Once
	// dead: the machine of the connections made so far is without power.
	dead atomic.Pointer[atomic.Bool]
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.end.Do(func() { close(p.ended) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.accepted <- far
	return &mains{near, p.dead.Load()}, nil
}

// mains is a connection to a machine that may lose its power. Nothing says so: what is sent is lost, and nothing comes.
type mains struct {
	net.Conn
	dead *atomic.Bool
}

func (w *mains) Write(b []byte) (int, error) {
	if w.dead.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

// A guard has one connection, and asks each 5 s for 4 s. It must be answered again before 20 s have passed.
func TestAnAPIServerThatDiesSilentlyIsGivenUpBeforeAGuardHasToStopItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{accepted: make(chan net.Conn), ended: make(chan struct{})}
		network.dead.Store(&atomic.Bool{})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("it is asked by %s", r.Proto)
			}
		}))
		server.Listener.Close()
		server.Listener, server.EnableHTTP2 = network, true
		server.StartTLS()
		defer server.Close()
		client := clientOf(t, server, network)
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/", nil)
			if err != nil {
				return err
			}
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			return answer.Body.Close()
		}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		network.dead.Swap(&atomic.Bool{}).Store(true)
		began := time.Now()
		for ask() != nil {
			if time.Since(began) > time.Minute {
				t.Fatal("it is never answered again")
			}
			<-time.After(time.Second)
		}
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("it is answered again after %v", took)
		}
		client.CloseIdleConnections()
	})
}

// clientOf is a client by a file, as the processes of Berth have it, whose network is the test's.
func clientOf(t *testing.T, server *httptest.Server, network *pipes) *http.Client {
	t.Helper()
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		t.Setenv(name, "")
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: "https://example.com"}},
		Contexts:       map[string]*api.Context{"c": {Cluster: "c"}},
		CurrentContext: "c",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clusterConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	config.Dial, config.CAData = network.dial, pemOf(server)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
