package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/controller/events"
	"berth.dev/berth/internal/replicate/cert/issue"
)

const (
	// SecretSuffix and ConfigMapSuffix follow the name of the installation.
	SecretSuffix    = "-authority"
	ConfigMapSuffix = "-authorities"
	// RootsKey has the certificates in both objects, and keysKey the keys in the Secret, in the same order.
	RootsKey = "ca.crt"
	keysKey  = "ca.key"
	// look is how often the objects are looked at.
	look = time.Minute
)

// The reasons of events.
const (
	// ReasonAuthorityLost: the Secret is gone, and certificates that it signed may live.
	ReasonAuthorityLost = "AuthorityLost"
	// ReasonAuthorityDamaged: the Secret has something else than authorities with their keys.
	ReasonAuthorityDamaged = "AuthorityDamaged"
)

// A problem is what only people can settle.
type problem struct{ reason, message string }

func (p *problem) Error() string { return p.message }

// Keeper has the authority of nodes' certificates.
type Keeper struct {
	// Live reads the API server itself. Client writes.
	Live   client.Reader
	Client client.Client
	// Namespace that Berth is installed in, and the name that its objects begin with.
	Namespace, Name string
	// Instance is the process that tells of problems.
	Instance string
	Clock    clock.WithTicker
	Random   io.Reader
	Log      logr.Logger

	mu    sync.Mutex
	known issue.Authorities
	// wrong is the reason of the problem that was seen last, empty if the last look found none.
	wrong string
}

// trouble shows the problems that only people can settle.
var trouble = prometheus.NewDesc("berth_authority_problem", "1 while the authority of nodes' certificates has the problem, so that no node gets a certificate.", []string{"reason"}, nil)

var _ prometheus.Collector = (*Keeper)(nil)

// Describe implements prometheus.Collector.
func (*Keeper) Describe(out chan<- *prometheus.Desc) { out <- trouble }

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, reason := range []string{ReasonAuthorityLost, ReasonAuthorityDamaged} {
		value := 0.
		if k.wrong == reason {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(trouble, prometheus.GaugeValue, value, reason)
	}
}

// note keeps what the last look found, for those who watch.
func (k *Keeper) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrong = ""
	if p, is := errors.AsType[*problem](err); is {
		k.wrong = p.reason
	}
}

// objects are the two as they were read; an absent one has no version.
type objects struct {
	roots  *corev1.ConfigMap
	secret *corev1.Secret
}

// Roots returns the authorities that this process has seen last.
func (k *Keeper) Roots() (*x509.CertPool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		return nil, errors.New("the authority has not been read yet")
	}
	return k.known.Pool(), nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start looks at the objects once a minute until ctx ends.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := k.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		if _, err := k.Authorities(ctx); err != nil && ctx.Err() == nil {
			k.Log.Error(err, "the authority of nodes' certificates")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Authorities returns the authorities as the Secret has them now. It makes the first one, adds a successor in
// time, and publishes the certificates before it returns: nothing is signed by an authority that is not
// published.
func (k *Keeper) Authorities(ctx context.Context) (issue.Authorities, error) {
	now := k.Clock.Now()
	seen, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	old, err := stored(seen, now)
	k.note(err)
	if err != nil {
		return nil, errors.Join(err, k.tell(ctx, seen, err))
	}
	next, changed, err := old.Next(now, k.Random)
	if err != nil {
		return nil, err
	}
	if changed {
		if err := k.store(ctx, seen.secret, next); err != nil {
			return nil, err
		}
		k.Log.Info("the authorities of nodes' certificates have changed", "before", len(old), "now", len(next))
	}
	if err := k.publish(ctx, seen.roots, next); err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.known = next
	k.mu.Unlock()
	return next, nil
}

// read is E1 and E2: it reads the ConfigMap, and then the Secret. In this order a ConfigMap without a Secret is
// never one whose Secret another controller is making.
func (k *Keeper) read(ctx context.Context) (seen objects, err error) {
	seen.roots, seen.secret = &corev1.ConfigMap{}, &corev1.Secret{}
	for _, o := range []struct {
		object client.Object
		suffix string
	}{{seen.roots, ConfigMapSuffix}, {seen.secret, SecretSuffix}} {
		key := types.NamespacedName{Namespace: k.Namespace, Name: k.Name + o.suffix}
		if err := k.Live.Get(ctx, key, o.object); client.IgnoreNotFound(err) != nil {
			return seen, fmt.Errorf("reading the authority of nodes' certificates: %w", err)
		}
		o.object.SetNamespace(key.Namespace)
		o.object.SetName(key.Name)
	}
	return seen, nil
}

// stored returns the authorities that the Secret has: none if there never was one.
func stored(seen objects, now time.Time) (issue.Authorities, error) {
	name := seen.secret.Namespace + "/" + seen.secret.Name
	if seen.secret.ResourceVersion != "" {
		a, err := issue.ParseAuthorities(seen.secret.Data[RootsKey], seen.secret.Data[keysKey])
		if err != nil {
			return nil, &problem{ReasonAuthorityDamaged, fmt.Sprintf("Secret %s does not have the authority of nodes' certificates, so no node gets a new one: %v. "+
				"Restore the Secret from a backup, or begin anew as docs/peers.md says.", name, err)}
		}
		return a, nil
	}
	if !mayLive(seen.roots, now) {
		return nil, nil
	}
	return nil, &problem{ReasonAuthorityLost, fmt.Sprintf("Secret %s is gone, and ConfigMap %s has its authority: certificates that it signed may be in use, so no other one is made, "+
		"and no node gets a new certificate. Restore the Secret from a backup, or begin anew as docs/peers.md says.", name, seen.roots.Name)}
}

// mayLive tells whether the ConfigMap has an authority that is valid. One that cannot be read may be.
func mayLive(roots *corev1.ConfigMap, now time.Time) bool {
	if roots.ResourceVersion == "" {
		return false
	}
	list, err := issue.ParseRoots([]byte(roots.Data[RootsKey]))
	for _, c := range list {
		if now.Before(c.NotAfter) {
			return true
		}
	}
	return err != nil
}

// store is E3: it makes the Secret, or replaces the version that was read. Another controller may have been
// faster; the caller comes again.
func (k *Keeper) store(ctx context.Context, read *corev1.Secret, a issue.Authorities) error {
	keys, err := a.Keys()
	if err != nil {
		return err
	}
	next := read.DeepCopy()
	next.Type = corev1.SecretTypeOpaque
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	next.Data[RootsKey], next.Data[keysKey] = a.Roots(), keys
	if next.ResourceVersion == "" {
		err = k.Client.Create(ctx, next)
	} else {
		err = k.Client.Update(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("writing the authority of nodes' certificates: %w", err)
	}
	return nil
}

// publish is E4: it makes the ConfigMap have the certificates and nothing else.
func (k *Keeper) publish(ctx context.Context, read *corev1.ConfigMap, a issue.Authorities) (err error) {
	roots := a.Roots()
	if len(read.Data) == 1 && len(read.BinaryData) == 0 && bytes.Equal([]byte(read.Data[RootsKey]), roots) {
		return nil
	}
	next := read.DeepCopy()
	next.Data, next.BinaryData = map[string]string{RootsKey: string(roots)}, nil
	if next.ResourceVersion == "" {
		err = k.Client.Create(ctx, next)
	} else {
		err = k.Client.Update(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("publishing the authority of nodes' certificates: %w", err)
	}
	return nil
}

// raced tells whether a write was refused because another controller was faster.
func raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// tell is E5: it tells of a problem where people look, once a day.
func (k *Keeper) tell(ctx context.Context, seen objects, err error) error {
	p, is := errors.AsType[*problem](err)
	if !is {
		return nil
	}
	now := k.Clock.Now()
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: seen.secret.Namespace, Name: seen.secret.Name, UID: seen.secret.UID}
	return events.Publish(ctx, k.Client, events.Event{
		Name: events.Name("authority.", p.message+now.UTC().Format(time.DateOnly)), About: about,
		Type: corev1.EventTypeWarning, Reason: p.reason, Action: "Sign", Note: p.message, At: now, Instance: k.Instance,
	})
}
