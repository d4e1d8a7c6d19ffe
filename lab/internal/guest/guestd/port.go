package main

import (
	"fmt"
	"os"
	"path/filepath"
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
			return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(path)), os.O_WRONLY, 0)
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
