// Command writer appends records to a raw disk until it is ended, and says of each that it reached the
// disk: on its standard output, and on a console that works while the network does not.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"berth.dev/berth/test/writes"
)

func main() {
	device := flag.String("device", "/dev/volume", "the disk")
	console := flag.String("console", "", "where acknowledgements go beside the standard output")
	pause := flag.Duration("pause", 100*time.Millisecond, "time between two records")
	flag.Parse()
	if err := write(*device, *console, *pause); err != nil {
		fmt.Fprintln(os.Stderr, "writer:", err)
		os.Exit(1)
	}
}

func write(device, console string, pause time.Duration) (err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	disk, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	size, err := disk.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	out := io.Writer(os.Stdout)
	if console != "" {
		c, err := os.OpenFile(console, os.O_WRONLY|syscall.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		out = io.MultiWriter(c, out)
	}
	log, err := writes.Open(disk, size, writes.Record{
		Node: cmp.Or(os.Getenv("NODE_NAME"), "unknown"), Pod: os.Getenv("POD_UID"), Boot: strings.TrimSpace(string(boot)),
	})
	if err != nil {
		return err
	}
	next := time.NewTicker(pause)
	defer next.Stop()
	for ; ; <-next.C {
		a, err := log.Append()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "\n%s\n", a); err != nil {
			return err
		}
	}
}
