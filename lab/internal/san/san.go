package san

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/process"
)

// The kinds of targets.
const (
	TGT = "tgt"
	LIO = "lio"
)

// Target is the name under which initiators find the logical units.
const Target = "iqn.2026-01.dev.berth.lab:san"

// Port is the TCP port of the portal.
const Port = 3260

// maxLUNs bounds the logical units of a target.
const maxLUNs = 16

// ErrNotExist says that the lab has no SAN.
var ErrNotExist = errors.New("the cluster has no SAN: make one with `lab san up`")

// Settings say which target to make.
type Settings struct {
	Kind string `json:"kind"`
	// Persist lets reservations survive a restart of the target. Only [LIO] can.
	Persist bool `json:"persist,omitempty"`
}

// Validate reports a combination that no target has.
func (s Settings) Validate() error {
	switch {
	case s.Kind != TGT && s.Kind != LIO:
		return fmt.Errorf("kind of target %q: use %s or %s", s.Kind, TGT, LIO)
	case s.Kind == TGT && s.Persist:
		return errors.New("tgtd keeps reservations in memory: use --kind lio for reservations that survive a restart")
	}
	return nil
}

// LUN is a logical unit.
type LUN struct {
	Number int    `json:"number"` // from 1
	Size   int64  `json:"size"`   // bytes
	File   string `json:"file"`   // raw content, on this machine
	Serial string `json:"serial"` // unit serial number, as initiators see it
}

// record is the content of san.json.
type record struct {
	Settings
	LUNs    []LUN          `json:"luns,omitempty"`
	Process process.Record `json:"process"` // of tgtd
	// Latency is added to each answer of the target. It ends when the target restarts.
	Latency time.Duration `json:"latency,omitempty"`
}

// SAN is the target of one lab, on or off. Callers make sure that only one process
// changes it at a time.
type SAN struct {
	dir    string // of the target's own files
	netns  string // path of the lab's network namespace
	record record
}

// Place says where a target lives.
type Place struct {
	Dir   string
	NetNS string
}

const recordFile = "san.json"

// Create records a target without logical units. It does not start it.
func Create(p Place, s Settings) (*SAN, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	san := &SAN{dir: p.Dir, netns: p.NetNS, record: record{Settings: s}}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the SAN: %w", err)
	}
	return san, san.save()
}

// Open returns the target in a place, or [ErrNotExist].
func Open(p Place) (*SAN, error) {
	data, err := os.ReadFile(filepath.Join(p.Dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotExist
	}
	san := &SAN{dir: p.Dir, netns: p.NetNS}
	if err == nil {
		err = json.Unmarshal(data, &san.record)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the SAN: %w", err)
	}
	return san, nil
}

func (s *SAN) save() error {
	data, err := json.MarshalIndent(s.record, "", "  ")
	path := filepath.Join(s.dir, recordFile)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("recording the SAN: %w", err)
	}
	return nil
}

// Settings returns the settings with which the target was made.
func (s *SAN) Settings() Settings { return s.record.Settings }

// LUNs returns the logical units by number.
func (s *SAN) LUNs() []LUN { return slices.Clone(s.record.LUNs) }

// Latency returns the delay that [SAN.Delay] set.
func (s *SAN) Latency() time.Duration { return s.record.Latency }

// next returns the logical unit that the next [SAN.Add] makes.
func (r record) next(dir string, size int64) (LUN, error) {
	const sector = 512
	if size < 1<<20 || size%sector != 0 {
		return LUN{}, fmt.Errorf("logical unit of %d bytes: use at least 1M, in whole sectors of %d bytes", size, sector)
	}
	for n := 1; n <= maxLUNs; n++ {
		if !slices.ContainsFunc(r.LUNs, func(l LUN) bool { return l.Number == n }) {
			return LUN{Number: n, Size: size, File: filepath.Join(dir, fmt.Sprintf("lun%d.raw", n)), Serial: fmt.Sprintf("berthlab%04d", n)}, nil
		}
	}
	return LUN{}, fmt.Errorf("the target has %d logical units, and cannot have more", maxLUNs)
}

func (r record) find(number int) (LUN, error) {
	var known []int
	for _, l := range r.LUNs {
		if l.Number == number {
			return l, nil
		}
		known = append(known, l.Number)
	}
	return LUN{}, fmt.Errorf("there is no logical unit %d: there are %v", number, known)
}

// makeFile makes the empty, sparse content of a logical unit.
func (l LUN) makeFile() error {
	f, err := os.OpenFile(l.File, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating logical unit %d: %w", l.Number, err)
	}
	if err := errors.Join(f.Truncate(l.Size), f.Close()); err != nil {
		return fmt.Errorf("creating logical unit %d: %w", l.Number, err)
	}
	return nil
}

// Add makes an empty logical unit and offers it, at once if the target is on.
func (s *SAN) Add(ctx context.Context, size int64) (LUN, error) {
	lun, err := s.record.next(s.dir, size)
	if err != nil {
		return LUN{}, err
	}
	if err := lun.makeFile(); err != nil {
		return LUN{}, err
	}
	s.record.LUNs = append(s.record.LUNs, lun)
	if err := s.save(); err != nil {
		return LUN{}, err
	}
	if s.Power() == guest.Off {
		return lun, nil
	}
	if err := s.engine().offer(ctx, lun); err != nil {
		return LUN{}, errors.Join(fmt.Errorf("offering logical unit %d: %w", lun.Number, err), s.Remove(context.WithoutCancel(ctx), lun.Number))
	}
	return lun, nil
}

// Remove takes a logical unit away from the initiators, in use or not, and deletes it.
func (s *SAN) Remove(ctx context.Context, number int) error {
	lun, err := s.record.find(number)
	if err != nil {
		return err
	}
	if err := s.engine().withdraw(ctx, lun); err != nil {
		return fmt.Errorf("taking logical unit %d away: %w", number, err)
	}
	s.record.LUNs = slices.DeleteFunc(s.LUNs(), func(l LUN) bool { return l.Number == number })
	if err := s.save(); err != nil {
		return err
	}
	if err := os.Remove(lun.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing logical unit %d: %w", number, err)
	}
	return nil
}

// engine is the program that serves the logical units.
type engine interface {
	power() guest.Power
	start(ctx context.Context) error // with all logical units; nothing if it is on
	stop(ctx context.Context) error  // at once, as a loss of power does
	offer(ctx context.Context, l LUN) error
	withdraw(ctx context.Context, l LUN) error // also one that is not offered, and while it is off
	delay(ctx context.Context, d time.Duration) error
	logs() map[string]string
}
