package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestConcurrentCallersMakeOneLinkWithoutErrors(t *testing.T) {
	dir := t.TempDir()
	path, device := filepath.Join(dir, "zvol", "tank", "pvc-1"), filepath.Join(dir, "zd0")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var d Devices
	errs := make([]error, 16)
	var all sync.WaitGroup
	for n := range errs {
		all.Go(func() {
			for range 50 {
				errs[n] = errors.Join(errs[n], d.relink(path, device))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if got, err := filepath.EvalSymlinks(path); err != nil || got != device {
		t.Errorf("it leads to %s, %v", got, err)
	}
}
