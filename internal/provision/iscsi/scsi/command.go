package scsi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Command is a command for a logical unit.
type Command struct {
	// Name is the name in the standard, for people.
	Name string
	CDB  []byte
	// Out is the data to send. In is how many bytes the answer may have. At most one is set.
	Out []byte
	In  int
}

// Result is the answer to a command.
type Result struct {
	// Status of the target. It counts only if Host is zero or the status is not GOOD.
	Status byte
	// Host is the kernel's own code for a command that did not reach the target, or got no answer.
	Host  uint16
	Sense []byte
	// Data is as long as the target answered.
	Data []byte
}

// Codes of a target's status.
const (
	Good                = 0x00
	CheckCondition      = 0x02
	Busy                = 0x08
	ReservationConflict = 0x18
	TaskSetFull         = 0x28
	TaskAborted         = 0x40
)

var (
	// ErrReservationConflict says that the command needs a reservation or a registration that the session
	// does not have. The target has done nothing.
	ErrReservationConflict = errors.New("reservation conflict")
	// ErrBusy says that the target asks to send the command again later.
	ErrBusy = errors.New("the target is busy")
	// ErrNoAnswer says that the command did not reach the target, or its answer did not come back. It may have been executed.
	ErrNoAnswer = errors.New("the target did not answer")
	// ErrMalformed says that the answer contradicts the standard.
	ErrMalformed = errors.New("the target's answer is malformed")
)

// Err returns what a result means: nil, one of the errors above, or a *SenseError.
func (r Result) Err() error {
	switch r.Status {
	case Good:
		if r.Host != 0 {
			return fmt.Errorf("%w: the kernel says %#x", ErrNoAnswer, r.Host)
		}
		return nil
	case CheckCondition:
		sense, err := ParseSense(r.Sense)
		if err != nil {
			return err
		}
		return &sense
	case ReservationConflict:
		return ErrReservationConflict
	case Busy, TaskSetFull:
		return ErrBusy
	case TaskAborted:
		return fmt.Errorf("%w: it aborted the command", ErrNoAnswer)
	default:
		return fmt.Errorf("%w: status %#x", ErrMalformed, r.Status)
	}
}

// SenseKey is the kind of a check condition.
type SenseKey byte

// Sense keys that make a difference here.
const (
	NotReady       SenseKey = 0x2
	HardwareError  SenseKey = 0x4
	IllegalRequest SenseKey = 0x5
	UnitAttention  SenseKey = 0x6
)

func (k SenseKey) String() string {
	names := [...]string{"NO SENSE", "RECOVERED ERROR", "NOT READY", "MEDIUM ERROR", "HARDWARE ERROR", "ILLEGAL REQUEST", "UNIT ATTENTION",
		"DATA PROTECT", "BLANK CHECK", "VENDOR SPECIFIC", "COPY ABORTED", "ABORTED COMMAND", "0Ch", "VOLUME OVERFLOW", "MISCOMPARE", "COMPLETED"}
	return names[k&0x0f]
}

// SenseError is why a target ended a command with CHECK CONDITION.
type SenseError struct {
	Key SenseKey
	// Code and Qualifier are the additional sense code and its qualifier.
	Code, Qualifier byte
}

func (s *SenseError) Error() string {
	return fmt.Sprintf("%s (additional sense code %02Xh/%02Xh)", s.Key, s.Code, s.Qualifier)
}

// ParseSense reads sense data of either format, fixed or of descriptors.
func ParseSense(b []byte) (SenseError, error) {
	if len(b) < 4 {
		return SenseError{}, fmt.Errorf("%w: CHECK CONDITION with %d bytes of sense data", ErrMalformed, len(b))
	}
	switch b[0] & 0x7f {
	case 0x70, 0x71:
		s := SenseError{Key: SenseKey(b[2] & 0x0f)}
		if len(b) >= 14 && b[7] >= 6 {
			s.Code, s.Qualifier = b[12], b[13]
		}
		return s, nil
	case 0x72, 0x73:
		return SenseError{Key: SenseKey(b[1] & 0x0f), Code: b[2], Qualifier: b[3]}, nil
	}
	return SenseError{}, fmt.Errorf("%w: sense data of the format %#x", ErrMalformed, b[0])
}

// VPD is a page of the vital product data.
type VPD byte

// Pages that identify a unit.
const (
	UnitSerialNumber     VPD = 0x80
	DeviceIdentification VPD = 0x83
)

// vpdLimit is enough for a page of these, and the most that old targets send.
const vpdLimit = 252

// Inquiry asks a unit for a page of its vital product data.
func Inquiry(page VPD) Command {
	cdb := []byte{0x12, 0x01, byte(page), 0, 0, 0}
	binary.BigEndian.PutUint16(cdb[3:], vpdLimit)
	return Command{Name: "INQUIRY", CDB: cdb, In: vpdLimit}
}
