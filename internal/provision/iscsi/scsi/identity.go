package scsi

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// page returns the body of a page of vital product data of a disk, as far as it is there.
func page(b []byte, which VPD) ([]byte, error) {
	switch {
	case len(b) < 4:
		return nil, fmt.Errorf("%w: a page of %d bytes", ErrMalformed, len(b))
	case b[0] != 0:
		// A qualifier says that there is no unit of this number, and a type that it is no disk.
		return nil, fmt.Errorf("%w: the unit is no disk, or is gone (peripheral %#x)", ErrMalformed, b[0])
	case VPD(b[1]) != which:
		return nil, fmt.Errorf("%w: page %#x, not %#x", ErrMalformed, b[1], byte(which))
	}
	return b[4:min(len(b), 4+int(binary.BigEndian.Uint16(b[2:])))], nil
}

// Names returns the world-wide names in a unit's page of device identification, as the kernel
// writes them: "naa.6001405..." and "eui.0002c9...". Names of ports are left out, and names that are
// unique only among the units of one vendor or of one place (NAA of the type 3).
func Names(b []byte) ([]string, error) {
	body, err := page(b, DeviceIdentification)
	if err != nil {
		return nil, err
	}
	var names []string
	for len(body) >= 4 && len(body) >= 4+int(body[3]) {
		codes, kind, name := body[0]&0x0f, body[1], body[4:4+int(body[3])]
		body = body[4+len(name):]
		const binaryCodes, ofUnit = 1, 0
		if codes != binaryCodes || kind>>4&3 != ofUnit {
			continue
		}
		switch {
		case kind&0x0f == 3 && (len(name) == 8 || len(name) == 16) && name[0]>>4 != 3:
			names = append(names, "naa."+hex.EncodeToString(name))
		case kind&0x0f == 2 && (len(name) == 8 || len(name) == 12 || len(name) == 16):
			names = append(names, "eui."+hex.EncodeToString(name))
		}
	}
	return names, nil
}

// Serial returns the serial number in a unit's page of that name, without space around it; empty
// if it has none, or one with bytes that are not printable ASCII.
func Serial(b []byte) (string, error) {
	body, err := page(b, UnitSerialNumber)
	if err != nil {
		return "", err
	}
	serial := strings.Trim(string(body), " \x00")
	if strings.ContainsFunc(serial, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", nil
	}
	return serial, nil
}
