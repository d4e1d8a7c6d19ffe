package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/test/writes"
)

func TestAFileIsJudgedWithTheLinesOfAConsole(t *testing.T) {
	dir := t.TempDir()
	lun, console := filepath.Join(dir, "lun"), filepath.Join(dir, "console")
	disk, err := os.Create(lun)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	const size = 8 * writes.Slot
	if err := disk.Truncate(size); err != nil {
		t.Fatal(err)
	}
	log, err := writes.Open(disk, size, writes.Record{Node: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	lines := "[    0.0] a kernel says something\r\n"
	for range 3 {
		a, err := log.Append()
		if err != nil {
			t.Fatal(err)
		}
		lines += "\r\n" + a.String() + "\r\n"
	}
	if err := os.WriteFile(console, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := verify(&out, lun, console); err != nil || out.String() != "3 records of 1 writers, 3 acknowledged, 0 faults\n" {
		t.Errorf("%v: %s", err, out.String())
	}
	if _, err := disk.WriteAt(make([]byte, writes.Slot), 2*writes.Slot); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := verify(&out, lun, console); err == nil || !strings.Contains(out.String(), "record 3 was acknowledged in term 1, and is lost") {
		t.Errorf("%v: %s", err, out.String())
	}
}
