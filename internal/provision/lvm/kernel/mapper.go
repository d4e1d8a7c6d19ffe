package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapperControl is the control device, which takes requests to the device mapper.
var mapperControl = filepath.Join("/dev", unix.DM_DIR, unix.DM_CONTROL_NODE)

// targetTypeAt is the offset of the type in the description of a target.
const targetTypeAt = unix.SizeofDmTargetSpec - unix.DM_MAX_TYPE_NAME

// targetSpace is how many bytes an answer can have: one target and its status. The answer for
// a device of several targets need not fit.
const targetSpace = 16 << 10

var (
	errNotOneTarget = errors.New("the device does not consist of one target")
	errShortAnswer  = errors.New("the device mapper's answer is cut short")
)

// Target returns the type and the status of the one target that a device-mapper
// device consists of; fs.ErrNotExist if there is no such device, or no device mapper
// at all. The request tells the kernel not to flush anything: a flush would start input and
// output on a thin pool.
func (Devices) Target(name string) (kind, status string, err error) {
	answer, err := askMapper(unix.DM_TABLE_STATUS, name)
	if err != nil {
		return "", "", err
	}
	if kind, status, err = parseTarget(answer); err != nil {
		err = fmt.Errorf("asking for the status of device %s: %w", name, err)
	}
	return kind, status, err
}

// Opens returns how often a device-mapper device is open; 0 if there is none.
func (Devices) Opens(name string) (int, error) {
	answer, err := askMapper(unix.DM_DEV_STATUS, name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int((*unix.DmIoctl)(unsafe.Pointer(&answer[0])).Open_count), nil //nolint:gosec // as it was made
}

// UUID returns the uuid of a device-mapper device.
func (Devices) UUID(name string) (string, error) {
	answer, err := askMapper(unix.DM_DEV_STATUS, name)
	if err != nil {
		return "", err
	}
	uuid := (*unix.DmIoctl)(unsafe.Pointer(&answer[0])).Uuid //nolint:gosec // as it was made
	return text(uuid[:]), nil
}

// Provides says whether the kernel has a type of target. The kernel loads the module for it, if
// there is one, with the machine's own modprobe, also for a process in a container. Provides assumes
// that a kernel too old for this request (before 5.2) has the target.
func (Devices) Provides(target string) (bool, error) {
	switch _, err := askMapper(unix.DM_GET_TARGET_VERSION, target); {
	case errors.Is(err, unix.EINVAL):
		return false, nil
	case errors.Is(err, unix.ENOTTY):
		return true, nil
	default:
		return err == nil, err
	}
}

// askMapper makes a request about a device and returns the answer; os.ErrNotExist if
// there is no such device, or no device mapper at all.
func askMapper(request uintptr, name string) (answer []byte, err error) {
	if name == "" || len(name) >= unix.DM_NAME_LEN {
		return nil, fmt.Errorf("%q cannot be the name of a device: %w", name, unix.EINVAL)
	}
	answer = mapperRequest(name, targetSpace)
	switch err := control(request, answer); {
	case errors.Is(err, unix.ENXIO): // the device mapper's error for a missing device
		return nil, fmt.Errorf("device %s: %w", name, os.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("asking for the status of device %s: %w", name, err)
	}
	return answer, nil
}

// control makes a request to the device mapper, which writes its answer over the request.
func control(request uintptr, answer []byte) error {
	mapper, err := os.OpenFile(mapperControl, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mapper.Close()
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, mapper.Fd(), request, uintptr(unsafe.Pointer(&answer[0]))) //nolint:gosec // the answer is written into the request
	if errno != 0 {
		return errno
	}
	return nil
}

// mapperRequest returns a request of this many bytes, about the device of this name if there is one.
func mapperRequest(name string, space uint32) []byte {
	request := make([]byte, space)
	header := (*unix.DmIoctl)(unsafe.Pointer(&request[0]))  //nolint:gosec // large enough
	header.Version = [3]uint32{unix.DM_VERSION_MAJOR, 0, 0} // any minor version of this interface
	header.Data_size, header.Data_start = space, unix.SizeofDmIoctl
	header.Flags = unix.DM_NOFLUSH_FLAG
	copy(header.Name[:], name)
	return request
}

// parseTarget reads the answer: a header, a target, and the text of its status.
func parseTarget(answer []byte) (kind, status string, err error) {
	header := (*unix.DmIoctl)(unsafe.Pointer(&answer[0])) //nolint:gosec // as it was made
	start, end := uint64(header.Data_start), uint64(header.Data_size)
	if header.Flags&unix.DM_BUFFER_FULL_FLAG != 0 || end > uint64(len(answer)) || start+unix.SizeofDmTargetSpec > end {
		return "", "", errShortAnswer
	}
	if header.Target_count != 1 {
		return "", "", fmt.Errorf("%w: it has %d", errNotOneTarget, header.Target_count)
	}
	status = text(answer[start+unix.SizeofDmTargetSpec : end])
	return text(answer[start+targetTypeAt : start+unix.SizeofDmTargetSpec]), status, nil
}

// text returns the part of b before its first zero byte.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}
