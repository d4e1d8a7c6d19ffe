package rules

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/peer/address"
	"berth.dev/berth/internal/replicate/cert/issue"
)

var (
	otherSigner = denied("berth-node-certificates", "agents and guards ask for certificates of the signer berth.dev/replication only")
	longRequest = denied("berth-node-certificates", "a request of an agent or a guard has at most 3072 bytes")
)

func TestAnAgentAnnouncesNoOtherNodesAddress(t *testing.T) {
	env := apitest.Start(t)
	agent := env.Agent(t, "n1")
	for _, name := range []string{"n1", "n9"} {
		o := lease(v1alpha1.AgentLeasePrefix + name)
		if err := client.IgnoreAlreadyExists(env.Client.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	leases := address.Leases{Client: env.Client, Namespace: apitest.Namespace, Prefix: v1alpha1.AgentLeasePrefix}
	expect(t, leases.Announce(t.Context(), agent, "n1", "10.1.2.3:9811"), "")
	if got, err := leases.Address(t.Context(), "n1"); got != "10.1.2.3:9811" {
		t.Errorf("it is found at %q, %v", got, err)
	}
	expect(t, leases.Announce(t.Context(), agent, "n9", "10.1.2.3:9811"), ownLease)
}

func TestAgentsAndGuardsAskForNoOtherSignerAndForNothingLong(t *testing.T) {
	env := apitest.Start(t)
	for who, asks := range map[string]client.Client{"agent": env.Agent(t, "n1"), "guard": env.Guard(t, "n1")} {
		t.Run(who, func(t *testing.T) {
			env.Grant(t, "certificates", who)
			ask := func(signer string, size int) error {
				csr := &certificatesv1.CertificateSigningRequest{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
					Spec: certificatesv1.CertificateSigningRequestSpec{
						Request: csrText(t, size), SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
					},
				}
				return asks.Create(t.Context(), csr)
			}
			expect(t, ask(issue.Signer, issue.MaxRequest), "")
			expect(t, ask(certificatesv1.KubeAPIServerClientSignerName, issue.MaxRequest), otherSigner)
			expect(t, ask(issue.Signer, issue.MaxRequest+1), longRequest)
		})
	}
}

// csrText is a request for the name of n1, followed by empty lines up to a size.
func csrText(t *testing.T, size int) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := certutil.MakeCSRFromTemplate(key, issue.Template("n1"))
	if err != nil {
		t.Fatal(err)
	}
	return append(text, bytes.Repeat([]byte("\n"), size-len(text))...)
}

func TestAControllerMakesNoSecretThatKubernetesFillsWithAToken(t *testing.T) {
	env := apitest.Start(t)
	controller := user(t, env, "system:serviceaccount:"+apitest.Namespace+":"+apitest.ControllerAccount,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}})
	for name, c := range map[string]struct {
		edit    func(*corev1.Secret)
		refusal string
	}{
		"the authority":              {func(*corev1.Secret) {}, ""},
		"one without a type":         {func(s *corev1.Secret) { s.Name, s.Type = "another-authority", "" }, ""},
		"the token of an account":    {func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken }, noOtherSecret},
		"another Secret":             {func(s *corev1.Secret) { s.Name = "berth-other" }, noOtherSecret},
		"one that gets its name now": {func(s *corev1.Secret) { s.Name, s.GenerateName = "", "berth-authority" }, noOtherSecret},
	} {
		t.Run(name, func(t *testing.T) {
			s := &corev1.Secret{Type: corev1.SecretTypeOpaque}
			s.Namespace, s.Name = apitest.Namespace, "policy-authority"
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "berth-agent"}
			c.edit(s)
			expect(t, controller.Create(t.Context(), s), c.refusal)
		})
	}
}
