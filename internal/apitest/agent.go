package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Namespace is where Berth would be installed. It exists.
	Namespace = "berth-system"
	// AgentAccount is the agents' service account in Namespace. Its role allows
	// every write to the kinds that an admission policy narrows, so that a
	// refusal is the policy's and not the role's.
	AgentAccount = "berth-agent"
)

// Agent returns a client with the token of an agent's pod on a node: a real
// one, issued by the API server and bound to the pod.
func (e *Environment) Agent(t testing.TB, node string) client.Client {
	t.Helper()
	c, err := e.agentClient(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// AgentConfig is Agent for callers that make their own clients.
func (e *Environment) AgentConfig(t testing.TB, node string) *rest.Config {
	t.Helper()
	config, err := e.agentConfig(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// UnboundAgent returns a client with a token of the agents' account that is
// bound to no pod.
func (e *Environment) UnboundAgent(t testing.TB) client.Client {
	t.Helper()
	config, err := e.tokenConfig(t.Context(), AgentAccount, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (e *Environment) agentClient(ctx context.Context, node string) (client.Client, error) {
	config, err := e.agentConfig(ctx, node)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: e.Scheme})
}

func (e *Environment) agentConfig(ctx context.Context, node string) (*rest.Config, error) {
	return e.podConfig(ctx, AgentAccount, node)
}

// podConfig has a token of an account that is bound to a pod on a node.
func (e *Environment) podConfig(ctx context.Context, account, node string) (*rest.Config, error) {
	component := strings.TrimPrefix(account, "berth-")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: component + "-" + node},
		Spec: corev1.PodSpec{
			NodeName:           node,
			ServiceAccountName: account,
			Containers:         []corev1.Container{{Name: component, Image: "berth/agent"}},
		},
	}
	for _, object := range []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, pod} {
		if err := client.IgnoreAlreadyExists(e.Client.Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("creating the %s of %s: %w", component, node, err)
		}
	}
	if err := e.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return nil, fmt.Errorf("reading the %s of %s: %w", component, node, err)
	}
	return e.tokenConfig(ctx, account, &authenticationv1.BoundObjectReference{
		Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
	})
}

func (e *Environment) installAgentAccount(ctx context.Context) error {
	everything := []string{"*"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if err := e.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("creating %s: %w", Namespace, err)
	}
	return e.installAccount(ctx, AgentAccount,
		rbacv1.PolicyRule{APIGroups: []string{"berth.dev"}, Resources: everything, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"csistoragecapacities", "storageclasses"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	)
}
