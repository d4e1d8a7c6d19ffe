package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoweredOffAnnotation on a Node is the word of a system that controls the power of machines: a boot
// of the node's machine has ended. Its value is a PowerRecord in JSON:
//
//	kubectl annotate node NODE berth.dev/powered-off='{"machine":"<uuid>","boot":"<id>","since":"2026-11-24T10:00:00Z"}'
//
// It is a proof that the boot writes no more: a volume that this boot owns may go on elsewhere. So it is
// written only after the power was seen to be off. It may stay when the machine is switched on again: that
// is another boot. An admission policy lets only those write it who may create "powerrecords" of the group
// berth.dev, which is a right in RBAC and no kind of object.
const PoweredOffAnnotation = "berth.dev/powered-off"

// PowerRecord says that a boot of a machine has ended.
type PowerRecord struct {
	// Machine is the system UUID of the machine that was switched off: status.nodeInfo.systemUUID of
	// its Node. A Node's name may have gone to another machine.
	Machine string `json:"machine"`
	// Boot is the id of the boot that ended: status.nodeInfo.bootID of the Node.
	Boot string `json:"boot"`
	// Since is when the machine was seen to be off.
	Since metav1.Time `json:"since"`
}

// maxPowerRecord is more than the three values of a record take.
const maxPowerRecord = 1024

// ParsePowerRecord reads the value of PoweredOffAnnotation. A record that lacks a value, or that has
// others, is an error: it proves nothing.
func ParsePowerRecord(value string) (PowerRecord, error) {
	var r PowerRecord
	if len(value) > maxPowerRecord {
		return PowerRecord{}, fmt.Errorf("a power record has %d bytes, and %d at most", len(value), maxPowerRecord)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(value)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return PowerRecord{}, fmt.Errorf("reading a power record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return PowerRecord{}, errors.New("a power record has more after its end")
	}
	if r.Machine == "" || r.Boot == "" || r.Since.IsZero() {
		return PowerRecord{}, errors.New("a power record must name machine, boot and since")
	}
	return r, nil
}
