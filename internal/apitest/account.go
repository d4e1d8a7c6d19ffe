package apitest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SchedulerAccount is berth-scheduler's service account in Namespace.
const SchedulerAccount = "berth-scheduler"

// ControllerAccount is the controllers' service account in Namespace.
const ControllerAccount = "berth-controller"

// Controller returns a client with a token of the controllers' account, whose role allows every
// write to Berth's objects.
func (e *Environment) Controller(t testing.TB) client.Client {
	t.Helper()
	return e.accountClient(t, ControllerAccount)
}

// ControllerConfig is Controller for callers that make their own clients.
func (e *Environment) ControllerConfig(t testing.TB) *rest.Config {
	t.Helper()
	e.Controller(t) // makes the account
	config, err := e.tokenConfig(t.Context(), ControllerAccount, nil)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Scheduler returns a client with a token of the scheduler's account. Like the agents'
// role, its role allows every write to Berth's objects. The first call makes the account:
// tests of the scheduler itself install the chart's, which may do less.
func (e *Environment) Scheduler(t testing.TB) client.Client {
	t.Helper()
	return e.accountClient(t, SchedulerAccount)
}

func (e *Environment) accountClient(t testing.TB, name string) client.Client {
	t.Helper()
	everything := []string{"*"}
	err := e.installAccount(t.Context(), name,
		rbacv1.PolicyRule{APIGroups: []string{"berth.dev"}, Resources: everything, Verbs: everything})
	if err != nil {
		t.Fatal(err)
	}
	config, err := e.tokenConfig(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// GuardAccount is the guards' service account in Namespace.
const GuardAccount = "berth-guard"

// Guard returns a client with the token of a node's guard. Its role allows every write to every
// Lease. The first call makes the account.
func (e *Environment) Guard(t testing.TB, node string) client.Client {
	t.Helper()
	return e.guardClient(t, func() (*rest.Config, error) { return e.podConfig(t.Context(), GuardAccount, node) })
}

// GuardConfig is Guard for callers that make their own clients.
func (e *Environment) GuardConfig(t testing.TB, node string) *rest.Config {
	t.Helper()
	e.Guard(t, node) // makes the account
	config, err := e.podConfig(t.Context(), GuardAccount, node)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// UnboundGuard returns a client with a token of the guards' account that is bound to no pod.
func (e *Environment) UnboundGuard(t testing.TB) client.Client {
	t.Helper()
	return e.guardClient(t, func() (*rest.Config, error) { return e.tokenConfig(t.Context(), GuardAccount, nil) })
}

func (e *Environment) guardClient(t testing.TB, config func() (*rest.Config, error)) client.Client {
	t.Helper()
	everything := []string{"*"}
	err := e.installAccount(t.Context(), GuardAccount,
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{"berth.dev"}, Resources: []string{"storagenodes"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(made, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installAccount makes a service account with a cluster role of the same name, unless they
// are there.
func (e *Environment) installAccount(ctx context.Context, name string, rules ...rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: name}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	var failed []error
	for _, object := range []client.Object{account, role, binding} {
		if err := client.IgnoreAlreadyExists(e.Client.Create(ctx, object)); err != nil {
			failed = append(failed, fmt.Errorf("creating %T %s: %w", object, object.GetName(), err))
		}
	}
	return errors.Join(failed...)
}

// tokenConfig is a connection with a token of an account. The token is bound to an object, or to
// none if bound is nil.
func (e *Environment) tokenConfig(ctx context.Context, name string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	if err := e.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("requesting a token: %w", err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = token.Status.Token
	config.QPS, config.Burst = e.Config.QPS, e.Config.Burst
	return config, nil
}
