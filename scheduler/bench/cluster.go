package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// abreast is how many requests are sent at once where many objects are made.
const abreast = 16

// install makes the objects that the chart and an administrator would make.
func (s *server) install(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: berthNamespace}},
		&v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: v1alpha1.PoolClassSpec{
			Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{pool}},
			InlineVolumes: &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}},
		}},
		storageClass(), csiDriver(),
	} {
		if err := s.berth.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// grow adds nodes number from up to below to.
func (s *server) grow(ctx context.Context, from, to int) error {
	var done atomic.Int64
	finished := progress(fmt.Sprintf("making nodes %d to %d", from, to-1), &done, to-from)
	defer finished()
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(abreast)
	for i := from; i < to; i++ {
		all.Go(func() error {
			defer done.Add(1)
			return s.addNode(ctx, i)
		})
	}
	return all.Wait()
}

func (s *server) addNode(ctx context.Context, i int) error {
	name, options := nodeName(i), metav1.CreateOptions{}
	if _, err := s.core.CoreV1().Nodes().Create(ctx, node(i), options); err != nil {
		return fmt.Errorf("creating Node %s: %w", name, err)
	}
	if _, err := s.core.StorageV1().CSINodes().Create(ctx, csiNode(name), options); err != nil {
		return fmt.Errorf("creating CSINode %s: %w", name, err)
	}
	if _, err := s.core.StorageV1().CSIStorageCapacities(berthNamespace).Create(ctx, capacityOf(name), options); err != nil {
		return fmt.Errorf("creating CSIStorageCapacity %s: %w", name, err)
	}
	if _, err := s.core.CoordinationV1().Leases(berthNamespace).Create(ctx, lease(name), options); err != nil {
		return fmt.Errorf("creating the Lease of %s: %w", name, err)
	}
	report := storageNode(name)
	status := report.Status
	if err := s.berth.Create(ctx, report); err != nil {
		return fmt.Errorf("creating StorageNode %s: %w", name, err)
	}
	report.Status = status
	if err := s.berth.Status().Update(ctx, report); err != nil {
		return fmt.Errorf("reporting StorageNode %s: %w", name, err)
	}
	return nil
}

// publishCapacity says whether the driver publishes capacity, which the stock
// scheduler compares claims with.
func (s *server) publishCapacity(ctx context.Context, yes bool) error {
	for {
		driver, err := s.core.StorageV1().CSIDrivers().Get(ctx, v1alpha1.LocalDriverName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the CSIDriver: %w", err)
		}
		driver.Spec.StorageCapacity = &yes
		_, err = s.core.StorageV1().CSIDrivers().Update(ctx, driver, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// progress shows on the terminal how far something is, once a second and on one
// line, or nothing where there is no terminal to draw on.
func progress(what string, done *atomic.Int64, of int) (finished func()) {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	begun, stop, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if terminal {
					fmt.Fprintf(os.Stderr, "\r%s: %d of %d ", what, done.Load(), of)
				}
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		if terminal {
			fmt.Fprint(os.Stderr, "\r")
		}
		fmt.Fprintf(os.Stderr, "%s: %d of %d, %s\n", what, done.Load(), of, time.Since(begun).Round(100*time.Millisecond))
	}
}
