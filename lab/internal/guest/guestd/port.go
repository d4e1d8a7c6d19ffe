package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// openPort opens the virtio port with a name, for writing: the way to a file
// on the host.
func openPort(name string) (*os.File, error) {
	paths, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if found, err := os.ReadFile(path); err == nil && string(found) == name+"\n" {
			return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(path)), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		}
	}
	return nil, fmt.Errorf("there is no virtio port named %s", name)
}

// announce tells the host that exec sessions are answered from now on.
func announce(port string) error {
	f, err := openPort(port)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("ready\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// logTo returns the file that a service writes its log to. It is a pipe, which outlives the
// service, and not the port: a service that writes to the port itself can hang for ever,
// see patient.
func logTo(port *os.File) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		if _, err := io.Copy(patient{port, time.Second}, r); err != nil {
			logf("writing to %s: %v", port.Name(), err)
			_, _ = io.Copy(io.Discard, r) // a log that is lost must not stop the service
		}
	}()
	return w, nil
}

// patient writes to a port, and asks it again now and then whether it has room.
// The port takes one message at a time. It has happened that the host's answer never
// woke the port's driver; the driver looks for the answer when it is asked.
type patient struct {
	port  *os.File
	again time.Duration
}

func (p patient) Write(b []byte) (written int, err error) {
	for written < len(b) {
		if err := p.port.SetWriteDeadline(time.Now().Add(p.again)); err != nil {
			return written, err
		}
		n, err := p.port.Write(b[written:])
		written += n
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
	}
	return written, nil
}
