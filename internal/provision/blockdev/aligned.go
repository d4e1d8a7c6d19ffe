package blockdev

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Aligned reads a file opened with O_DIRECT in whole blocks, into memory that
// begins at a block.
type Aligned int

// block is the largest logical block of any disk.
const block = 4096

// ReadAt implements io.ReaderAt.
func (fd Aligned) ReadAt(p []byte, off int64) (int, error) {
	start := off / block * block
	end := (off + int64(len(p)) + block - 1) / block * block
	buffer := Buffer(int(end - start))
	n, err := unix.Pread(int(fd), buffer, start)
	if err != nil {
		return 0, err
	}
	if n < int(off-start)+len(p) {
		return 0, fmt.Errorf("the device ends at %d", start+int64(n))
	}
	return copy(p, buffer[off-start:]), nil
}

// Buffer returns memory of a size that begins at a block.
func Buffer(size int) []byte {
	buffer := make([]byte, size+block)
	skip := (block - int(uintptr(unsafe.Pointer(&buffer[0]))%block)) % block //nolint:gosec // alignment only
	return buffer[skip : skip+size : skip+size]
}
