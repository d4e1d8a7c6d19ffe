package guest

import (
	"fmt"
	"io"
	"strings"
)

// cpioWriter writes the "newc" archive format, from which the kernel unpacks an
// initramfs. Times and owners are zero, so equal content gives equal archives.
type cpioWriter struct {
	w     io.Writer
	inode int
}

const (
	cpioDirectory = 0o040755
	cpioProgram   = 0o100755
	cpioFile      = 0o100644
	cpioDevice    = 0o020600
)

func (c *cpioWriter) directory(name string) error { return c.entry(name, cpioDirectory, 0, 0, nil) }

func (c *cpioWriter) file(name string, mode int, data []byte) error {
	return c.entry(name, mode, 0, 0, data)
}

func (c *cpioWriter) characterDevice(name string, major, minor int) error {
	return c.entry(name, cpioDevice, major, minor, nil)
}

func (c *cpioWriter) close() error {
	c.inode = -1
	return c.entry("TRAILER!!!", 0, 0, 0, nil)
}

func (c *cpioWriter) entry(name string, mode, major, minor int, data []byte) error {
	c.inode++
	var b strings.Builder
	b.WriteString("070701")
	for _, field := range []int{c.inode, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name) + 1, 0} {
		fmt.Fprintf(&b, "%08X", field)
	}
	b.WriteString(name + "\x00")
	pad(&b, b.Len())
	b.Write(data)
	pad(&b, len(data))
	_, err := io.WriteString(c.w, b.String())
	return err
}

// pad adds zero bytes up to the next multiple of four.
func pad(b *strings.Builder, length int) {
	for ; length%4 != 0; length++ {
		b.WriteByte(0)
	}
}
