package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// printNames prints the names of the groups, as JSON or as text.
func printNames(a arguments) error {
	all, err := groups()
	if err != nil {
		return err
	}
	rows := []map[string]string{}
	for _, g := range all {
		rows = append(rows, map[string]string{"vg_name": g.Name})
		if a.flags["--reportformat"] == "" {
			fmt.Fprintln(os.Stdout, " ", g.Name)
		}
	}
	if a.flags["--reportformat"] == "" {
		return nil
	}
	return printJSON([]any{map[string]any{"vg": rows}})
}

// printReport prints a full report of the named groups, or of all.
func printReport(a arguments) error {
	all, err := groups()
	if err != nil {
		return err
	}
	sections := []any{}
	for _, g := range all {
		if len(a.operands) == 0 || slices.Contains(a.operands, g.Name) {
			sections = append(sections, g.section())
		}
	}
	if len(sections) < len(a.operands) {
		return fmt.Errorf("Volume group %q not found", strings.Join(a.operands, ", ")) //nolint:staticcheck // LVM's words
	}
	return printJSON(sections)
}

func printJSON(sections []any) error {
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"report": sections})
}

func (g *group) section() map[string]any {
	lvs := []map[string]string{}
	for _, v := range g.Volumes {
		lvs = append(lvs, map[string]string{
			"lv_name": v.Name, "lv_size": text(v.Extents * extentSize), "lv_tags": strings.Join(v.Tags, ","),
			"lv_active_locally": bit(isActive(g, v.Name)), "lv_device_open": bit(isOpen(g, v.Name)), "lv_health_status": "",
		})
	}
	return map[string]any{
		"vg": []map[string]string{{
			"vg_name": g.Name, "vg_uuid": g.UUID, "vg_seqno": strconv.FormatUint(g.Seqno, 10),
			"vg_extent_size": text(extentSize), "vg_extent_count": text(g.Extents), "vg_free_count": text(g.free()),
			"vg_missing_pv_count": "0", "vg_exported": "0",
		}},
		"pv": []map[string]string{{"pv_name": g.device}},
		"lv": lvs, "pvseg": []any{}, "seg": []any{},
	}
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func bit(is bool) string {
	if is {
		return "1"
	}
	return "0"
}
