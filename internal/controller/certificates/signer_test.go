package certificates_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/certificates"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

// cluster has the chart's rights, and as many controllers as a test starts.
type cluster struct {
	*apitest.Environment
	t      *testing.T
	keeper *certificates.Keeper
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Environment: apitest.Start(t), t: t}
	c.Controller(t) // makes its account; that of the agents is there
	c.Guard(t, "alpha")
	c.Grant(t, "certificates", "agent", "guard", "controller")
	c.Grant(t, "certificates-signer", "controller")
	c.Grant(t, "controller", "controller") // events
	return c
}

// controller runs the signer as a controller does, with the rights of the chart, until the test ends.
func (c *cluster) controller() {
	c.t.Helper()
	m, err := ctrl.NewManager(c.ControllerConfig(c.t), ctrl.Options{
		Scheme: c.Scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{ReaderFailOnMissingInformer: true, ByObject: map[client.Object]cache.ByObject{&certificatesv1.CertificateSigningRequest{}: certificates.Requests()}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	must(c.t, err)
	c.keeper = &certificates.Keeper{
		Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: apitest.Namespace, Name: "berth", Instance: "test",
		Clock: clock.RealClock{}, Random: rand.Reader, Log: logr.Discard(),
	}
	s := &certificates.Signer{Client: m.GetClient(), Keeper: c.keeper, Users: certificates.Users(apitest.Namespace, "berth")}
	must(c.t, s.SetupWithManager(m))
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// request is one of Berth's signer by an account, for a name.
func request(t *testing.T, name string, change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	text, err := certutil.MakeCSRFromTemplate(key, issue.Template(name))
	must(t, err)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: text, SignerName: issue.Signer, Usages: issue.Usages},
	}
	if change != nil {
		change(csr)
	}
	return csr
}

// ends waits until a request has its end, and returns that.
func (c *cluster) ends(csr *certificatesv1.CertificateSigningRequest) string {
	c.t.Helper()
	end := ""
	await(c.t, "the end of request "+csr.Name, func() bool {
		must(c.t, c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(csr), csr))
		for _, condition := range csr.Status.Conditions {
			end = string(condition.Type) + " " + condition.Reason
			if condition.Type != certificatesv1.CertificateApproved {
				return true
			}
		}
		return len(csr.Status.Certificate) > 0
	})
	return end
}

func TestAgentsGuardsAndControllersGetTheirCertificates(t *testing.T) {
	c := newCluster(t)
	c.controller()
	for who, config := range map[string]*rest.Config{
		"alpha": c.AgentConfig(t, "alpha"), "beta": c.GuardConfig(t, "beta"), cert.Controllers: c.ControllerConfig(t),
	} {
		clients, err := kubernetes.NewForConfig(config)
		must(t, err)
		own, err := issue.NewManager(t.Context(), who, clients, issue.Memory{})
		must(t, err)
		own.Start()
		await(t, "the certificate of "+who, func() bool { return own.Current() != nil })
		roots, err := c.keeper.Roots()
		must(t, err)
		leaf := own.Current().Leaf
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: cert.Name(who)}); err != nil {
			t.Errorf("the certificate of %s: %v", who, err)
		}
		own.Stop()
	}
}

func TestAProcessAsksAnewWhenItsAuthorityIsTrustedNoLonger(t *testing.T) {
	c := newCluster(t)
	c.controller()
	await(t, "the authority", func() bool { _, err := c.keeper.Roots(); return err == nil })
	clients, err := kubernetes.NewForConfig(c.AgentConfig(t, "anew"))
	must(t, err)
	own, err := issue.NewOwn(t.Context(), "anew", clients, issue.Memory{}, c.keeper.Roots)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	now := clocktesting.NewFakeClock(begun)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		own.Run(ctx, now)
	}()
	await(t, "the first certificate", func() bool { return own.Current() != nil })
	first := own.Current().Leaf
	now.Step(time.Minute)
	now.Step(time.Minute)
	if own.Current().Leaf != first {
		t.Error("a certificate that is trusted is replaced")
	}

	k := &keeper{t: t, Keeper: &certificates.Keeper{Client: c.Client, Namespace: apitest.Namespace, Name: "berth"}}
	must(t, errors.Join(c.Client.Delete(t.Context(), k.secret()), c.Client.Delete(t.Context(), k.published())))
	_, err = c.keeper.Authorities(t.Context())
	must(t, err)
	roots, err := c.keeper.Roots()
	must(t, err)
	await(t, "a certificate of the new authority", func() bool {
		now.Step(time.Second)
		current := own.Current()
		if current == nil {
			return false
		}
		_, err := current.Leaf.Verify(x509.VerifyOptions{Roots: roots})
		return err == nil
	})
	stop()
	<-ended
}

func TestARequestForAnythingButTheOwnNameIsRefusedOnTheAPIServer(t *testing.T) {
	c := newCluster(t)
	agent, admin := c.Agent(t, "alpha"), c.Client
	tests := map[string]struct {
		by       client.Client
		csr      *certificatesv1.CertificateSigningRequest
		want     string
		approved bool
	}{
		"another node's name":        {by: agent, csr: request(t, "beta", nil), want: "Denied OtherName"},
		"the controllers' name":      {by: agent, csr: request(t, cert.Controllers, nil), want: "Denied OtherName"},
		"by a controller for a node": {by: c.Controller(t), csr: request(t, "alpha", nil), want: "Denied OtherName"},
		"by a token of no pod":       {by: c.UnboundAgent(t), csr: request(t, "alpha", nil), want: "Denied NotBound"},
		"by who writes that it is the agent": {by: admin, csr: request(t, "alpha", func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Username = "system:serviceaccount:berth-system:berth-agent"
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/node-name": {"alpha"}}
		}), want: "Denied NotAgent"},
		"one that another has approved": {by: admin, csr: request(t, "alpha", nil), want: "Failed NotAgent", approved: true},
		"one of 200 KiB": {by: admin, csr: request(t, "alpha", func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = append(r.Spec.Request, bytes.Repeat([]byte("\n"), 200<<10)...)
		}), want: "Denied NotAgent"},
	}
	for _, test := range tests {
		must(t, test.by.Create(t.Context(), test.csr))
		if test.approved {
			test.csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True", Reason: "Mistake"}}
			must(t, admin.SubResource("approval").Update(t.Context(), test.csr))
		}
	}
	c.controller()
	for name, test := range tests {
		if got := c.ends(test.csr); got != test.want || len(test.csr.Status.Certificate) > 0 {
			t.Errorf("%s: it ends as %s, want %s", name, got, test.want)
		}
	}
}

func TestAControllerKeepsNoLongRequestInMemory(t *testing.T) {
	for size, want := range map[int]int{issue.MaxRequest: issue.MaxRequest, issue.MaxRequest + 1: 0} {
		csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Request: make([]byte, size)}}
		if _, err := certificates.Requests().Transform(csr); err != nil || cap(csr.Spec.Request) != want {
			t.Errorf("of %d bytes %d are kept, %v", size, cap(csr.Spec.Request), err)
		}
	}
}

func TestAFloodOfOneNodesRequestsDelaysItsOwnAlone(t *testing.T) {
	c := newCluster(t)
	agent := c.Agent(t, "flood")
	var all []*certificatesv1.CertificateSigningRequest
	for range 40 {
		csr := request(t, "flood", nil)
		must(t, agent.Create(t.Context(), csr))
		all = append(all, csr)
	}
	c.controller()
	other := request(t, "quiet", nil)
	must(t, c.Agent(t, "quiet").Create(t.Context(), other))
	if got := c.ends(other); got != "Approved OwnName" {
		t.Errorf("the request of another node ends as %s", got)
	}
	signed := func() (n int) {
		for _, csr := range all {
			must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(csr), csr))
			if len(csr.Status.Certificate) > 0 {
				n++
			}
		}
		return n
	}
	await(t, "as many certificates as a node may have at once", func() bool { return signed() >= 10 })
	last := request(t, "quiet", nil)
	must(t, c.Agent(t, "quiet").Create(t.Context(), last))
	c.ends(last)
	if n := signed(); n != 10 {
		t.Errorf("the node got %d certificates", n)
	}
}

func TestTwoControllersSignARequestOnce(t *testing.T) {
	c := newCluster(t)
	c.controller()
	c.controller()
	agent := c.Agent(t, "twice")
	for range 5 {
		csr := request(t, "twice", nil)
		must(t, agent.Create(t.Context(), csr))
		if got := c.ends(csr); got != "Approved OwnName" || len(csr.Status.Conditions) != 1 {
			t.Errorf("it ends as %s, with %d conditions", got, len(csr.Status.Conditions))
		}
	}
}

func TestNoNodeReadsTheKeyOrWritesWhatIsPublished(t *testing.T) {
	c := newCluster(t)
	c.controller()
	await(t, "the authority", func() bool { _, err := c.keeper.Roots(); return err == nil })
	k := &keeper{t: t, Keeper: &certificates.Keeper{Client: c.Client, Namespace: apitest.Namespace, Name: "berth"}}
	secret, published := k.secret(), k.published()
	for who, by := range map[string]client.Client{"an agent": c.Agent(t, "alpha"), "a guard": c.Guard(t, "alpha")} {
		for what, err := range map[string]error{
			"reads the Secret":      by.Get(t.Context(), client.ObjectKeyFromObject(secret), secret.DeepCopy()),
			"writes the Secret":     by.Update(t.Context(), secret.DeepCopy()),
			"writes the ConfigMap":  by.Update(t.Context(), published.DeepCopy()),
			"deletes the ConfigMap": by.Delete(t.Context(), published.DeepCopy()),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s %s: %v", who, what, err)
			}
		}
	}
}
