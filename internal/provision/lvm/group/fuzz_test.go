package group

import (
	"strings"
	"testing"
)

// A report has names and tags that others than Berth chose.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"report":[{"vg":[{"vg_name":"vg0","vg_size":"1048576","vg_free":"0","vg_extent_size":"4096","vg_seqno":"1"}],"pv":[],"lv":[{"lv_name":"pvc-1","lv_size":"4096","lv_tags":"berth.dev/volume=pvc-1"}]}]}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		groups, err := Parse(out)
		if err != nil && groups != nil {
			t.Errorf("an error and groups: %v", err)
		}
		for _, g := range groups {
			if g == nil || g.Name == "" {
				t.Errorf("a group without a name in %q", out)
			}
		}
		_, _ = ParseNames(out)
	})
}

// A logical volume is Berth's only if a tag bears its own name.
func FuzzTags(f *testing.F) {
	f.Add("pvc-1", "berth.dev/volume=pvc-1,berth.dev/fs=ext4")
	f.Add("pvc-2", "berth.dev/volume=pvc-1")
	f.Add("snap-1", "berth.dev/copying=snap-1,berth.dev/size=-1,berth.dev/taken=99999999999999999999")
	f.Fuzz(func(t *testing.T, name, tags string) {
		r := parseTags(name, tags)
		if r.kind == foreign || r.kind == isCow {
			return
		}
		for tag := range strings.SplitSeq(tags, ",") {
			if _, value, ok := strings.Cut(tag, "="); ok && value == name {
				return
			}
		}
		t.Errorf("%q is taken for Berth's by %q", name, tags)
	})
}

func FuzzThinStatus(f *testing.F) {
	f.Add("1 13/1024 20/16384 - rw discard_passdown queue_if_no_space - 1024")
	f.Add("Fail")
	f.Add("1 9/3 1/0 - rw - 1")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseThinStatus(text)
		if err == nil && (s.data.taken > s.data.total || s.metadata.taken > s.metadata.total) {
			t.Errorf("more is taken than there is: %+v", s)
		}
	})
}

func FuzzHostSettings(f *testing.F) {
	f.Add([]byte("global_filter=[\"a|.*|\"]\nfilter=\"r|/dev/sdb|\"\nuse_devicesfile=1\ndevicesfile=\"system.devices\"\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if h, err := ParseHost(out); err != nil && (h.DevicesFile != "" || h.filter != nil || h.global != nil) {
			t.Errorf("an error and settings: %+v", h)
		}
	})
}
