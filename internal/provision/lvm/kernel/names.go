package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapperPrefix begins the kernel's names of the device mapper's devices. Their minor number follows.
const mapperPrefix = "dm-"

// An entry of the list of devices: the number of a device, the distance to the next entry, the name.
const (
	nextAt = 8
	nameAt = 12
)

// namesSpace is the most that a list of devices may take. A hundred thousand devices fit.
const namesSpace = 16 << 20

// Names returns the names of all the device mapper's devices, by the kernel's names of them. There are
// none without a device mapper. One request tells all of them: a node may have a thousand volumes, and
// a file of sysfs for each costs three system calls.
func (Devices) Names() (map[string]string, error) { return names(control) }

func names(ask func(request uintptr, answer []byte) error) (map[string]string, error) {
	for space := uint32(targetSpace); space <= namesSpace; space *= 4 {
		answer := mapperRequest("", space)
		switch err := ask(unix.DM_LIST_DEVICES, answer); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("asking the device mapper for the names of its devices: %w", err)
		}
		if (*unix.DmIoctl)(unsafe.Pointer(&answer[0])).Flags&unix.DM_BUFFER_FULL_FLAG == 0 { //nolint:gosec // as it was made
			return parseNames(answer)
		}
	}
	return nil, errShortAnswer
}

// parseNames reads the answer: a header and a list. The list of no devices is one entry without a number.
func parseNames(answer []byte) (map[string]string, error) {
	header := (*unix.DmIoctl)(unsafe.Pointer(&answer[0])) //nolint:gosec // as it was made
	start, end := uint64(header.Data_start), uint64(header.Data_size)
	if end > uint64(len(answer)) || start > end {
		return nil, errShortAnswer
	}
	all := map[string]string{}
	for list := answer[start:end]; len(list) >= nextAt; {
		number := binary.NativeEndian.Uint64(list)
		if number == 0 {
			break
		}
		if len(list) < nameAt {
			return nil, errShortAnswer
		}
		next := binary.NativeEndian.Uint32(list[nextAt:])
		if next != 0 && (next < nameAt || uint64(next) > uint64(len(list))) {
			return nil, errShortAnswer
		}
		all[mapperPrefix+strconv.FormatUint(uint64(unix.Minor(number)), 10)] = text(list[nameAt:])
		if next == 0 {
			break
		}
		list = list[next:]
	}
	return all, nil
}
