//go:build platform

package tgttest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// initiator is one session with one connection, which sends one command at a time.
type initiator struct {
	mu       sync.Mutex
	conn     net.Conn
	tag      uint32
	command  uint32
	expected uint32 // the target's next number
}

// PDUs, by their opcodes.
const (
	opNop      = 0x00
	opCommand  = 0x01
	opLogin    = 0x03
	opNopIn    = 0x20
	opResponse = 0x21
	opLoggedIn = 0x23
	opDataIn   = 0x25

	immediate = 0x40
	unasked   = 0xffffffff
	header    = 48
)

// limit is how long the target may take for an answer.
const limit = 20 * time.Second

type pdu struct {
	head [header]byte
	data []byte
}

func (p *pdu) put(at int, v uint32) { binary.BigEndian.PutUint32(p.head[at:], v) }
func (p *pdu) get(at int) uint32    { return binary.BigEndian.Uint32(p.head[at:]) }

// logIn begins a session. isid tells it from others of the initiator.
func logIn(ctx context.Context, address, name, target string, isid uint16) (*initiator, error) {
	conn, err := (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	i := &initiator{conn: conn}
	keys := []string{"InitiatorName=" + name, "TargetName=" + target, "SessionType=Normal", "HeaderDigest=None", "DataDigest=None",
		"ImmediateData=Yes", "InitialR2T=No", "MaxRecvDataSegmentLength=65536", ""}
	p := &pdu{data: []byte(strings.Join(keys, "\x00"))}
	p.head[0], p.head[1] = opLogin|immediate, 0x87 // the operational stage, and then the full feature phase
	p.head[8] = 0x80                               // a random number as ISID
	binary.BigEndian.PutUint16(p.head[12:], isid)
	answer, err := i.exchange(p)
	if err == nil && (answer.head[0] != opLoggedIn || answer.head[36] != 0 || answer.head[1]&0x83 != 0x83) {
		err = fmt.Errorf("the login is answered with % x", answer.head)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return i, nil
}

func (i *initiator) exchange(p *pdu) (*pdu, error) {
	if err := i.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	if err := i.send(p); err != nil {
		return nil, err
	}
	return i.receive()
}

func (i *initiator) send(p *pdu) error {
	p.put(4, uint32(len(p.data)))
	p.put(24, i.command)
	p.put(28, i.expected)
	for len(p.data)%4 != 0 {
		p.data = append(p.data, 0)
	}
	_, err := i.conn.Write(append(p.head[:], p.data...))
	return err
}

// receive returns the next PDU that is not a question whether this initiator is alive.
func (i *initiator) receive() (*pdu, error) {
	for {
		p := &pdu{}
		if _, err := io.ReadFull(i.conn, p.head[:]); err != nil {
			return nil, err
		}
		length := p.get(4) & 0xffffff
		padded := make([]byte, (length+3)/4*4)
		if _, err := io.ReadFull(i.conn, padded); err != nil {
			return nil, err
		}
		p.data = padded[:length]
		if p.head[0] != opNopIn {
			i.expected = p.get(24) + 1
			return p, nil
		}
		if p.get(20) != unasked {
			answer := &pdu{}
			answer.head[0], answer.head[1] = opNop|immediate, 0x80
			copy(answer.head[8:24], p.head[8:24])
			answer.put(16, unasked)
			if err := i.send(answer); err != nil {
				return nil, err
			}
		}
	}
}

// execute sends a command to a unit.
func (i *initiator) execute(lun int, cdb, out []byte, in int) (scsi.Result, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := &pdu{data: append([]byte(nil), out...)}
	p.head[0], p.head[1] = opCommand, 0x81 // final, simple
	switch {
	case len(out) > 0:
		p.head[1] |= 0x20
		p.put(20, uint32(len(out)))
	case in > 0:
		p.head[1] |= 0x40
		p.put(20, uint32(in))
	}
	p.head[9] = byte(lun)
	i.tag++
	p.put(16, i.tag)
	copy(p.head[32:], cdb)
	answer, err := i.exchange(p)
	i.command++
	var r scsi.Result
	for ; err == nil; answer, err = i.receive() {
		switch answer.head[0] {
		case opDataIn:
			r.Data = append(r.Data, answer.data...)
			if answer.head[1]&0x01 == 0 {
				continue
			}
			r.Status = answer.head[3]
			return r, nil
		case opResponse:
			r.Status = answer.head[3]
			if len(answer.data) > 2 {
				r.Sense = answer.data[2:]
			}
			return r, nil
		default:
			return r, fmt.Errorf("the command is answered with % x", answer.head)
		}
	}
	return r, err
}

func (i *initiator) close() { i.conn.Close() }
