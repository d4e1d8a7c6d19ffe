package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/schedule/extender"
)

// Extender says how to serve a stock scheduler. The zero value serves none.
type Extender struct {
	Listener net.Listener
	// CertFile and KeyFile are the server's, and are read again when they change.
	// Without them the listener must be on a loopback address.
	CertFile, KeyFile string
	// ClientCAFile has the certificates of the authorities that may sign the scheduler's
	// certificate. It goes with CertFile, and is read again for every connection.
	ClientCAFile string
	// ClientName is the common name in the scheduler's certificate; SchedulerName
	// unless set. The name is checked since an authority signs other certificates
	// too: the cluster's authority signs every kubelet's.
	ClientName string
	Strategy   ledger.Strategy
}

// SchedulerName is the name by which kube-scheduler is known to the API server.
const SchedulerName = "system:kube-scheduler"

// check refuses a setup in which any client could ask: a filter call reserves room.
func (e *Extender) check() error {
	if (e.CertFile == "") != (e.KeyFile == "") {
		return errors.New("the extender's certificate and key go together")
	}
	if e.CertFile != "" {
		if e.ClientCAFile == "" {
			return errors.New("the extender answers the scheduler alone: say who signs the scheduler's certificate")
		}
		return nil
	}
	if e.ClientCAFile != "" {
		return errors.New("the extender can only check its clients' certificates if it has one itself")
	}
	address, ok := e.Listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("the extender listens on %s: give it a certificate and a key, or a loopback address", e.Listener.Addr())
	}
	return nil
}

// These bound how often this process asks the API server about objects that the scheduler has
// seen and this process has not. Informers are milliseconds behind each other, so a miss is rare.
const (
	missesPerSecond = 50
	missesAtOnce    = 100
)

// slowest is how long a question, or its answer, may take on the wire. A scheduler waits five
// seconds by default.
const slowest = 10 * time.Second

var errNotLeading = errors.New("another controller leads, and only that one knows the holds")

func availableIn(o client.Object) []string {
	if pv, ok := o.(*corev1.PersistentVolume); ok {
		if class, available := schedule.AvailableIn(pv); available {
			return []string{class}
		}
	}
	return nil
}

// addExtender serves the extender while this process leads. The leader keeps the
// holds in memory, so no other process may answer.
func addExtender(ctx context.Context, m ctrl.Manager, d driver.Driver, o Extender, book *schedule.Book, c clock.WithDelayedExecution) (*extender.Holds, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &corev1.PersistentVolume{}, schedule.AvailableIndex, availableIn); err != nil {
		return nil, fmt.Errorf("indexing PersistentVolumes that no claim has: %w", err)
	}
	holds := extender.NewHolds(book, c)
	objects := extender.Objects{
		Source: schedule.Cached{Reader: d.View(m.GetClient())}, Live: schedule.Cached{Reader: d.Live(m.GetAPIReader())},
		Misses: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(missesPerSecond, missesAtOnce, c),
	}
	e := &extender.Extender{Driver: d, Book: book, Objects: objects, Holds: holds, Strategy: o.Strategy}
	ready := func() error {
		select {
		case <-m.Elected():
		default:
			return errNotLeading
		}
		if !book.Synced() {
			return errNotSynced
		}
		return nil
	}
	server := &manager.Server{
		Name: "extender",
		Server: &http.Server{
			Handler:           extender.Handler(e, ready, m.GetLogger().WithName("extender")),
			ReadHeaderTimeout: slowest, ReadTimeout: slowest, WriteTimeout: slowest, IdleTimeout: 2 * time.Minute,
		},
		Listener:        o.Listener,
		ShutdownTimeout: new(time.Second),
	}
	if o.CertFile == "" {
		return holds, m.Add(server)
	}
	config, watch, err := o.tls()
	if err != nil {
		return nil, err
	}
	server.Listener = tls.NewListener(o.Listener, config)
	return holds, errors.Join(m.Add(everywhere(watch)), m.Add(server))
}
