package certificates

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

const (
	// A node has an agent and a guard, which ask every five days, and again after each start without a
	// certificate. A node that asks more often waits.
	requestsAtOnce = 10
	requestEvery   = 5 * time.Minute
)

// Users are the accounts of an installation: see issue.Users.
func Users(namespace, name string) issue.Users {
	account := func(part string) string { return "system:serviceaccount:" + namespace + ":" + name + "-" + part }
	return issue.Users{OnNodes: []string{account("agent"), account("guard")}, Controller: account("controller")}
}

// Requests are the requests of Berth's signer alone, as a controller caches them: without what is longer than a
// node's request, so that no request fills its memory.
func Requests() cache.ByObject {
	return cache.ByObject{
		Field: fields.OneTermEqualSelector("spec.signerName", issue.Signer),
		Transform: func(o any) (any, error) {
			if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
				csr.ManagedFields = nil
				if len(csr.Spec.Request) > issue.MaxRequest {
					csr.Spec.Request = csr.Spec.Request[:0:0] // no request at all: it is refused
				}
			}
			return o, nil
		},
	}
}

// Signer decides about requests for certificates, and signs.
type Signer struct {
	// Client reads requests from the cache, and writes.
	Client client.Client
	// Keeper has the authority, and the clock and the randomness that it signs by.
	Keeper *Keeper
	Users  issue.Users

	mu      sync.Mutex
	budgets map[string]*rate.Limiter // by issue.Asker
}

// SetupWithManager adds the reconciler and the keeper. They run whether or not the process leads.
func (s *Signer) SetupWithManager(m ctrl.Manager) error {
	if err := m.Add(s.Keeper); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named("certificates").
		WithOptions(controller.Options{
			NeedLeaderElection: new(false),
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 30*time.Second),
		}).
		For(&certificatesv1.CertificateSigningRequest{}).
		Complete(s)
}

// Reconcile decides about one request.
func (s *Signer) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := s.Client.Get(ctx, r.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if later := s.wait(csr); later > 0 {
		return reconcile.Result{RequeueAfter: later}, nil
	}
	d := issue.Decide(csr, s.Users)
	if d.Verb == issue.Ignore {
		return reconcile.Result{}, nil
	}
	err := s.carryOut(ctx, csr, d)
	switch {
	case raced(err) || apierrors.IsNotFound(err): // its event brings the next question, or it is gone
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("the request %s of %s (%s): %w", csr.Name, csr.Spec.Username, d.Reason, err)
	}
	log.FromContext(ctx).Info("certificate request decided", "request", csr.Name, "decision", d.Verb, "reason", d.Reason, "message", d.Message)
	return reconcile.Result{}, nil
}

// wait returns for how long a new request has to wait. One that was decided does not: a
// controller took it from the budget then, or an administrator decided it. Nor does a request of a controller:
// its account can sign by itself.
func (s *Signer) wait(csr *certificatesv1.CertificateSigningRequest) time.Duration {
	asker := issue.Asker(csr, s.Users)
	if len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0 || asker == cert.Controllers {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.budgets == nil {
		s.budgets = map[string]*rate.Limiter{}
	}
	budget := s.budgets[asker]
	if budget == nil {
		budget = rate.NewLimiter(rate.Every(requestEvery), requestsAtOnce)
		s.budgets[asker] = budget
	}
	if budget.AllowN(s.Keeper.Clock.Now(), 1) {
		return 0
	}
	return requestEvery
}

// carryOut writes what was decided against the version that was read.
func (s *Signer) carryOut(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, d issue.Answer) error {
	next := csr.DeepCopy()
	switch d.Verb {
	case issue.Approve:
		conclude(next, certificatesv1.CertificateApproved, d, s.Keeper.Clock.Now())
		return s.Client.SubResource("approval").Update(ctx, next)
	case issue.Deny:
		conclude(next, certificatesv1.CertificateDenied, d, s.Keeper.Clock.Now())
		return s.Client.SubResource("approval").Update(ctx, next)
	case issue.Fail:
		conclude(next, certificatesv1.CertificateFailed, d, s.Keeper.Clock.Now())
		return s.Client.Status().Update(ctx, next)
	case issue.Sign:
		authorities, err := s.Keeper.Authorities(ctx)
		if err != nil {
			return err
		}
		signer, err := authorities.Signer(s.Keeper.Clock.Now())
		if err != nil {
			return err
		}
		if next.Status.Certificate, err = signer.Sign(d, s.Keeper.Clock.Now(), s.Keeper.Random); err != nil {
			return err
		}
		return s.Client.Status().Update(ctx, next)
	}
	return fmt.Errorf("the decision is %s", d.Verb)
}

func conclude(csr *certificatesv1.CertificateSigningRequest, what certificatesv1.RequestConditionType, d issue.Answer, now time.Time) {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: what, Status: corev1.ConditionTrue, Reason: d.Reason, Message: d.Message,
		LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	})
}
