package main

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// network is in memory. dead says that the machine is without power that the connections made so far lead to.
type network struct {
	*bufconn.Listener
	dead *atomic.Bool
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := n.DialContext(ctx)
	return &mains{conn, n.dead}, err
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

// A guard has one connection, and renews its lease on it each 5 s, for 4 s. It stops its node's pods 20 s after the last
// renewal, so 15 s after the API server may have died.
func TestAnAPIServerThatDiesSilentlyIsGivenUpBeforeAGuardHasToStopItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &network{bufconn.Listen(64 << 10), &atomic.Bool{}}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("it is asked by %s", r.Proto)
			}
		}))
		server.Listener.Close()
		server.Listener, server.EnableHTTP2 = memory, true
		server.StartTLS()
		defer server.Close()
		client := clientOf(t, server, memory)
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
		memory.dead.Store(true)
		memory.dead = &atomic.Bool{} // of the other API server
		began := time.Now()
		for ask() != nil {
			if time.Since(began) > time.Minute {
				t.Fatal("it is never answered again")
			}
			<-time.After(time.Second)
		}
		if took := time.Since(began); took >= 15*time.Second {
			t.Errorf("it is answered again after %v", took)
		}
		client.CloseIdleConnections()
	})
}

// clientOf is a client by a file, as the processes of Berth have it, whose network is the test's.
func clientOf(t *testing.T, server *httptest.Server, memory *network) *http.Client {
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
	config.Dial, config.CAData = memory.dial, pemOf(server)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
