package controller_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/apitest/authority"
	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
)

// service is an extender that has a certificate.
type service struct {
	address net.Addr
	pair    authority.Pair // the files that it was given
	body    string         // a question that it can answer
}

func (s service) url() string { return "https://" + s.address.String() }

// secured starts a controller with such an extender.
func secured(t *testing.T, by *authority.Authority, clients string) service {
	t.Helper()
	c, l, pair := newCluster(t), loopback(t), by.Issue(t, "first")
	controllertest.Start(t, c.Environment, func(o *controller.Options) {
		o.Extender = controller.Extender{Listener: l, CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: clients}
	})
	pod := c.waitingPod(t, "none")
	body := fmt.Sprintf(`{"Pod":{"metadata":{"namespace":%q,"name":%q,"uid":%q}},"NodeNames":["n"]}`, pod.Namespace, pod.Name, pod.UID)
	return service{l.Addr(), pair, body}
}

// caller is a scheduler that trusts an authority and may have a certificate.
// Every question is asked on a connection of its own.
func caller(trusted *authority.Authority, own ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: trusted.Pool(), Certificates: own, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
}

// question asks for a filter that needs no ledger.
func (s service) question(t *testing.T, from *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/filter", strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := from.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response, string(text), err
}

// answered waits until the extender answers the client at all.
func (s service) answered(t *testing.T, from *http.Client) {
	t.Helper()
	await(t, "an answer over TLS", func() bool {
		response, _, err := s.question(t, from, s.url())
		return err == nil && response.StatusCode == http.StatusOK
	})
}

func TestTheExtenderAnswersOnlyWhomItsAuthorityHasSigned(t *testing.T) {
	servers, schedulers, strangers := authority.New(t), authority.New(t), authority.New(t)
	s := secured(t, servers, schedulers.File)
	s.answered(t, caller(servers, schedulers.Issue(t, controller.SchedulerName).Load(t)))

	refused := map[string]struct {
		from *http.Client
		says string
	}{
		"a client without a certificate":                        {caller(servers), "certificate required"},
		"a client with a certificate of a foreign authority":    {caller(servers, strangers.Issue(t, controller.SchedulerName).Load(t)), "tls: "},
		"a client with a certificate of the server's authority": {caller(servers, servers.Issue(t, controller.SchedulerName).Load(t)), "tls: "},
		"a kubelet with a certificate of the right authority":   {caller(servers, schedulers.Issue(t, "system:node:n").Load(t)), "tls: "},
		"a client that does not trust the server's authority":   {caller(schedulers, schedulers.Issue(t, controller.SchedulerName).Load(t)), "certificate signed by unknown authority"},
		"a client that speaks only TLS 1.2":                     {old(caller(servers, schedulers.Issue(t, controller.SchedulerName).Load(t))), "protocol version not supported"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			if _, _, err := s.question(t, test.from, s.url()); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an error that says %q", err, test.says)
			}
		})
	}
}

func old(c *http.Client) *http.Client {
	c.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	return c
}

func TestTheExtenderTellsPlainHTTPThatItWantsTLS(t *testing.T) {
	servers, schedulers := authority.New(t), authority.New(t)
	s := secured(t, servers, schedulers.File)
	s.answered(t, caller(servers, schedulers.Issue(t, controller.SchedulerName).Load(t)))
	response, text, err := s.question(t, http.DefaultClient, "http://"+s.address.String())
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusBadRequest || !strings.Contains(text, "HTTP request to an HTTPS server") {
		t.Errorf("plain HTTP is answered %s: %q", response.Status, text)
	}
}

func TestTheExtenderTakesUpRotatedCertificates(t *testing.T) {
	servers, schedulers, next := authority.New(t), authority.New(t), authority.New(t)
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	replace(t, trusted, schedulers.File)
	s := secured(t, servers, trusted)
	client, successor := caller(servers, schedulers.Issue(t, controller.SchedulerName).Load(t)), caller(servers, next.Issue(t, controller.SchedulerName).Load(t))
	s.answered(t, client)

	servers.Renew(t, s.pair, "second")
	await(t, "the second certificate", func() bool {
		response, _, err := s.question(t, client, s.url())
		return err == nil && response.TLS.PeerCertificates[0].Subject.CommonName == "second"
	})

	replace(t, trusted, next.File)
	if response, _, err := s.question(t, successor, s.url()); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("whom the new authority has signed is answered %v, %v", response, err)
	}
	if _, _, err := s.question(t, client, s.url()); err == nil {
		t.Error("whom only the former authority has signed is still answered")
	}
}

// replace replaces a file atomically by a copy of another.
func replace(t *testing.T, path, by string) {
	t.Helper()
	data, err := os.ReadFile(by)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestAControllerDoesNotStartWithAnAuthorityThatCannotBeRead(t *testing.T) {
	c, pair := newCluster(t), authority.New(t).Issue(t, "extender")
	for name, file := range map[string]string{"missing": filepath.Join(t.TempDir(), "none"), "a key": pair.KeyFile} {
		_, err := controller.New(t.Context(), controller.Options{Driver: driver.Local(),
			Config: c.Config, Namespace: apitest.Namespace, Log: logr.Discard(), Clock: clock.RealClock{},
			Extender: controller.Extender{Listener: loopback(t), CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: file},
		})
		if err == nil || !strings.Contains(err.Error(), "who signs the scheduler's certificate") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
