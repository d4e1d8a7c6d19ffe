package node

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADiskWithImagesIsMadeOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.img")
	if err := os.WriteFile(file, []byte("in use"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeImages(t.Context(), file, "/no/such", []string{"/no/such/archive"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "in use" {
		t.Errorf("the disk holds %q, %v", data, err)
	}
}

func TestADiskWithImagesThatCannotBeMadeLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	err := MakeImages(t.Context(), filepath.Join(dir, "images.img"), "/no/such", nil, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "/no/such/containerd") {
		t.Errorf("got %v, want mention of the program", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
