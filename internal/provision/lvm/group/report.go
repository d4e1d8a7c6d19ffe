package group

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The columns of each section of a full report that are read.
const (
	groupColumns  = "vg_name,vg_uuid,vg_seqno,vg_extent_size,vg_extent_count,vg_free_count,vg_missing_pv_count,vg_exported,vg_tags," + areaColumns
	areaColumns   = "vg_mda_size,vg_mda_free"
	deviceColumns = "pv_name"
	volumeColumns = "lv_uuid," + "lv_name,lv_size,lv_tags,lv_active_locally,lv_suspended,lv_device_open,lv_health_status,lv_attr,lv_layout,pool_lv,origin"
)

// number is how LVM writes figures: as text in report format "json", which every
// version knows, and plain in "json_std". Empty or unknown (-1) is 0.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "" || text == "null" || text == "-1" {
		*n = 0
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	*n = number(v)
	return err
}

type fullReport struct {
	Report []section `json:"report"`
}

// section is the part of a report about one volume group.
type section struct {
	VG []struct {
		Name       string `json:"vg_name"`
		UUID       string `json:"vg_uuid"`
		Seqno      number `json:"vg_seqno"`
		ExtentSize number `json:"vg_extent_size"`
		Extents    number `json:"vg_extent_count"`
		Free       number `json:"vg_free_count"`
		Missing    number `json:"vg_missing_pv_count"`
		Exported   number `json:"vg_exported"`
		Tags       string `json:"vg_tags"`
		area
	} `json:"vg"`
	PV []struct {
		Name string `json:"pv_name"`
	} `json:"pv"`
	LV []logicalVolume `json:"lv"`
}

type logicalVolume struct {
	UUID   string `json:"lv_uuid"`
	Name   string `json:"lv_name"`
	Size   number `json:"lv_size"`
	Tags   string `json:"lv_tags"`
	Active number `json:"lv_active_locally"`
	// Suspended says that a process that uses the device waits.
	Suspended number `json:"lv_suspended"`
	Open      number `json:"lv_device_open"`
	Health    string `json:"lv_health_status"`
	// Attr are flags by position, Layout words for its structure.
	Attr   string `json:"lv_attr"`
	Layout string `json:"lv_layout"`
	// Pool of a thin volume, and of some other kinds.
	Pool   string `json:"pool_lv"`
	Origin string `json:"origin"`
}

// ParseNames returns the names in a report of groups.
func ParseNames(out []byte) ([]string, error) {
	var report fullReport
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("reading LVM's report: %w", err)
	}
	var names []string
	for _, section := range report.Report {
		for _, vg := range section.VG {
			names = append(names, vg.Name)
		}
	}
	return names, nil
}

// Parse turns LVM's report into groups, of which several may have one name.
func Parse(out []byte) ([]*Facts, error) {
	var report fullReport
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("reading LVM's report: %w", err)
	}
	var groups []*Facts
	for _, section := range report.Report {
		if len(section.VG) != 1 || section.VG[0].Name == "" {
			continue // physical volumes that belong to no group
		}
		g, err := section.group()
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func (s section) group() (*Facts, error) {
	vg := s.VG[0]
	if vg.ExtentSize <= 0 {
		return nil, fmt.Errorf("reading LVM's report: volume group %s has no extent size", vg.Name)
	}
	g := &Facts{
		holdings: holdingsOf(vg.Name), UUID: vg.UUID, Seqno: uint64(vg.Seqno), //nolint:gosec // LVM counts up from 1
		extents: extents{unit: int64(vg.ExtentSize), total: int64(vg.Extents * vg.ExtentSize)},
		Pools:   ThinPools{}, UUIDs: map[string]string{},
	}
	g.managed = managed(vg.Name, vg.Tags)
	g.Area = vg.area
	g.foreign = int64((vg.Extents - vg.Free) * vg.ExtentSize)
	sorter{g}.sort(s.LV)
	for _, pv := range s.PV {
		g.Devices = append(g.Devices, pv.Name)
	}
	switch {
	case vg.Exported == 1:
		g.problem = "the volume group is exported: import it (vgimport " + vg.Name + ")"
	case vg.Missing > 0:
		g.problem = fmt.Sprintf("%d of %d physical volumes are missing", vg.Missing, len(s.PV))
	}
	return g, nil
}
