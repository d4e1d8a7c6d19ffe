package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The numbers of btrfs's ioctls, and the directions that they have in common.
const (
	family = 0x94
	write  = 1
	read   = 2

	doScan          = 4
	doForget        = 5
	doSubvolume     = 14
	doDestroy       = 15
	doSearch        = 17
	doAwaitCommit   = 22
	doSnapshot      = 23
	doBeginCommit   = 24
	doGetFlags      = 25
	doSetFlags      = 26
	doDeviceInfo    = 30
	doInfo          = 31
	doSend          = 38
	doQuota         = 40
	doAssign        = 41
	doGroup         = 42
	doLimit         = 43
	doSubvolumeInfo = 60
)

const (
	simpleQuotas = 4      // for doQuota
	readOnly     = 1 << 1 // for doSnapshot, doGetFlags and doSetFlags
	referenced   = 1      // for doLimit: the limit of what a group takes
	exclusive    = 2      // for doLimit: the limit of what it shares with no other group
	unlimited    = ^uint64(0)
	topLevel     = 5   // the subvolume that holds all others
	firstFree    = 256 // the first id of other subvolumes, and the inode of each one's root
	lastFree     = ^uint64(255)
	volumeLevel  = 1 << 48 // the level of the quota groups of volumes
)

type (
	nameArgs struct {
		_    int64
		name [4088]byte
	}
	nameArgsV2 struct {
		fd       int64
		_, flags uint64
		_        [4]uint64
		name     [4040]byte
	}
	deviceArgs struct {
		id               uint64
		_                [16]byte
		allocated, total uint64
		_                [4056]byte
	}
	infoArgs struct {
		maxID, _ uint64
		fsid     [16]byte
		_        [992]byte
	}
	quotaArgs  struct{ command, _ uint64 }
	assignArgs struct{ assign, member, group uint64 }
	groupArgs  struct{ create, id uint64 }
	limitArgs  struct {
		id, flags, referenced, exclusive uint64
		_                                [2]uint64
	}
	subvolumeArgs struct {
		id         uint64
		_          [272]byte
		generation uint64
		_          [8]byte
		uuid       [16]byte
		_          [192]byte
	}
	sendArgs struct {
		fd, _  int64
		_      uintptr
		parent uint64
		_      uint64
		_      uint32
		_      [28]byte
	}
	searchArgs struct {
		tree                                       uint64
		minID, maxID, minOffset, maxOffset, _, max uint64
		minType, maxType, items, _                 uint32
		_                                          [4]uint64
		found                                      [3992]byte
	}
)

// ioctl calls the kernel. The kernel knows a call by its number and the size of its argument.
func ioctl[T any](f *os.File, direction, number uintptr, arg *T) error {
	request := direction<<30 | unsafe.Sizeof(*arg)<<16 | family<<8 | number
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(arg))) //nolint:gosec // the kernel's form of a call
	if errno != 0 {
		return os.NewSyscallError(fmt.Sprintf("ioctl %d of btrfs", number), errno)
	}
	return nil
}

// uninterrupted runs a call on a thread that no signal reaches. A signal makes the kernel begin a call anew
// that it was carrying out: a stream would have its beginning again in its middle. The end of a child
// is such a signal, and so is a profile of the processor.
func uninterrupted(call func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, before := unix.Sigset_t{}, unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return os.NewSyscallError("sigmask", err)
	}
	err := call()
	return errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}

func named(name string) *nameArgs {
	a := &nameArgs{}
	copy(a.name[:len(a.name)-1], name)
	return a
}

func (a *nameArgsV2) named(name string) *nameArgsV2 {
	copy(a.name[:len(a.name)-1], name)
	return a
}
