package lvm_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// formatting starts to format pvc-1, which was made with that wiping. mkfs waits until open is
// closed, and ended gets the error of the call.
func formatting(t *testing.T, host *lvmtest.Host, wipe provision.Wipe) (p provision.Provisioner, open chan struct{}, ended chan error) {
	t.Helper()
	open, ended = make(chan struct{}), make(chan error, 1)
	begun := make(chan struct{})
	made, _ := start(t, config(host, func(ctx context.Context, v provision.Volume, filesystem, options string) error {
		close(begun)
		<-open
		return host.Mkfs(ctx, v, filesystem, options)
	}))
	r := request("pvc-1", 1)
	r.Wipe = wipe
	if _, err := made.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := made.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"})
		ended <- err
	}()
	<-begun
	return made, open, ended
}

func TestAVolumeIsNotDeletedWhileItIsFormatted(t *testing.T) {
	for name, wipe := range map[string]provision.Wipe{"a volume that is wiped": provision.WipeZero, "a volume that is not wiped": provision.WipeNone} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, open, ended := formatting(t, lvmtest.NewHost(map[string]int64{vg.Name: 100}), wipe)
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := p.Delete(short, "pvc-1"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("deleting it: %v", err)
				}
				synctest.Wait() // until nothing more is done for that caller
				close(open)
				if err := <-ended; err != nil {
					t.Errorf("formatting it: %v", err)
				}
				if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Filesystem != "ext4" {
					t.Errorf("it is %+v, %v", v, err)
				}
				if err := p.Delete(t.Context(), "pvc-1"); err != nil {
					t.Errorf("deleting it afterwards: %v", err)
				}
			})
		})
	}
}

func TestAFilesystemIsRecordedOnceNoOtherChangeOfTheGroupRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		p, open, ended := formatting(t, host, provision.WipeNone)
		release, done := make(chan struct{}), make(chan error, 1)
		var ran []string
		host.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			ran = append(ran, c.Operation)
			if c.Operation == "lvcreate" {
				<-release
			}
			return do()
		}
		go func() {
			_, err := p.Create(t.Context(), request("pvc-2", 1))
			done <- err
		}()
		synctest.Wait()
		close(open)
		synctest.Wait()
		if slices.Contains(ran, "lvchange") {
			t.Errorf("LVM ran %q at the same time", ran)
		}
		close(release)
		for _, c := range []chan error{done, ended} {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
	})
}
