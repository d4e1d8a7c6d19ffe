package iscsi

import (
	"fmt"
	"strings"
	"testing"
)

func TestAHandleIsReadAndPrinted(t *testing.T) {
	const array = "/iqn.2026-01.com.example:array"
	for text, want := range map[string]string{
		"iscsi://10.0.0.5" + array + "/1":                                      "",
		"iscsi://10.0.0.5:3260" + array + "/1":                                 "iscsi://10.0.0.5" + array + "/1",
		"iscsi://10.0.0.5:860,10.0.0.6" + array + "/16383":                     "",
		"iscsi://2001:db8::5" + array + "/0":                                   "",
		"iscsi://[2001:db8::5]" + array + "/0":                                 "iscsi://2001:db8::5" + array + "/0",
		"iscsi://[2001:DB8:0::5]:860" + array + "/0":                           "iscsi://[2001:db8::5]:860" + array + "/0",
		"iscsi://10.0.0.5/eui.02004567a425678d/3":                              "",
		"iscsi://10.0.0.5/naa.52004567ba64678d/3":                              "",
		"iscsi://10.0.0.5/naa.62004567ba64678d0123456789abcdef/3":              "",
		"iscsi://10.0.0.5/iqn.2026-12.x/3":                                     "",
		"iscsi://10.0.0.5/iqn.2026-12.x:" + strings.Repeat("a", 223-14) + "/3": "",
	} {
		if want == "" {
			want = text
		}
		h, err := ParseHandle(text)
		if err != nil || h.String() != want {
			t.Errorf("%s: %q, %v", text, h, err)
		}
	}
}

func TestHandlesOfOneUnitHaveOneNormalForm(t *testing.T) {
	const array = "iqn.2026-01.com.example:array"
	for text, want := range map[string]string{
		"iscsi://10.0.0.5/" + array + "/1":                        array + "/1",
		"iscsi://10.0.0.5:3260/" + array + "/1":                   array + "/1",
		"iscsi://10.0.0.6,[2001:DB8:0::5]:860/" + array + "/1":    array + "/1",
		"iscsi://10.0.0.5/" + array + "/11":                       array + "/11",
		"iscsi://2001:db8::5/eui.02004567a425678d/3":              "eui.02004567a425678d/3",
		"iscsi://10.0.0.5/naa.62004567ba64678d0123456789abcdef/0": "naa.62004567ba64678d0123456789abcdef/0",
	} {
		h, err := ParseHandle(text)
		if got := UnitOf(text); err != nil || got != want || got != UnitOf(h.String()) || got != fmt.Sprintf("%s/%d", h.Target, h.LUN) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if UnitOf("iscsi://a") == UnitOf("iscsi://b") {
		t.Error("what is no handle has the form of another")
	}
}

func TestAHandleThatIsNoneIsRefused(t *testing.T) {
	const array = "/iqn.2026-01.com.example:array"
	for text, want := range map[string]string{
		"":                                                                      "is not of the form",
		"10.0.0.5" + array + "/1":                                               "is not of the form",
		"iscsi://10.0.0.5" + array:                                              "is not of the form",
		"iscsi://10.0.0.5" + array + "/1/2":                                     "is not of the form",
		"iscsi:///iqn.2026-01.com.example:a/1":                                  "the portal",
		"iscsi://10.0.0.5," + array + "/1":                                      "the portal",
		"iscsi://san.example.com" + array + "/1":                                "the portal",
		"iscsi://10.0.0.5:0" + array + "/1":                                     "the portal",
		"iscsi://10.0.0.5:65536" + array + "/1":                                 "the portal",
		"iscsi://0.0.0.0" + array + "/1":                                        "the portal",
		"iscsi://224.0.0.1" + array + "/1":                                      "the portal",
		"iscsi://[10.0.0.5]" + array + "/1":                                     "the portal",
		"iscsi://2001:db8::5]" + array + "/1":                                   "the portal",
		"iscsi://fe80::1%eth0" + array + "/1":                                   "the portal",
		"iscsi://-T10.0.0.5" + array + "/1":                                     "the portal",
		"iscsi://::ffff:10.0.0.5" + array + "/1":                                "the portal",
		"iscsi://" + strings.Repeat("10.0.0.5,", 8) + "10.0.0.5" + array + "/1": "at most 8",
		"iscsi://10.0.0.5" + array + "/16384":                                   "the LUN",
		"iscsi://10.0.0.5" + array + "/01":                                      "the LUN",
		"iscsi://10.0.0.5" + array + "/+1":                                      "the LUN",
		"iscsi://10.0.0.5" + array + "/":                                        "the LUN",
		"iscsi://10.0.0.5/iqn.2026-01.com.Example:array/1":                      "has 'E'",
		"iscsi://10.0.0.5/iqn.2026-01.com.example:$(reboot)/1":                  "has '$'",
		"iscsi://10.0.0.5/iqn.2026-01.com.example:a b/1":                        "has ' '",
		"iscsi://10.0.0.5/iqn.2026-01.com.example:\x00/1":                       "has '\\x00'",
		"iscsi://10.0.0.5/iqn.2026-01.com.example:{/1":                          "has '{'",
		"iscsi://10.0.0.5/iqn.2026-01..example/1":                               "the target's name",
		"iscsi://10.0.0.5/iqn.2026-01.com./1":                                   "the target's name",
		"iscsi://10.0.0.5/iqn.2026001.com/1":                                    "the target's name",
		"iscsi://10.0.0.5/iqn.202a-01.com/1":                                    "the target's name",
		"iscsi://10.0.0.5/iqn.2026-1a.com/1":                                    "the target's name",
		"iscsi://10.0.0.5/iqn.26.com/1":                                         "the target's name",
		"iscsi://10.0.0.5/iqn.2026-011.com/1":                                   "the target's name",
		"iscsi://10.0.0.5/nqn.2026-01.com/1":                                    "the target's name",
		"iscsi://10.0.0.5/mac.02004567a425678d/1":                               "the target's name",
		"iscsi://10.0.0.5/mac.62004567ba64678d0123456789abcdef/1":               "the target's name",
		"iscsi://10.0.0.5/iqn.2026-13.com.example/1":                            "the target's name",
		"iscsi://10.0.0.5/iqn.2026-00.com.example/1":                            "the target's name",
		"iscsi://10.0.0.5/iqn.26-01.com.example/1":                              "the target's name",
		"iscsi://10.0.0.5/iqn.2026-01/1":                                        "the target's name",
		"iscsi://10.0.0.5/iqn.2026-01.:a/1":                                     "the target's name",
		"iscsi://10.0.0.5/eui.02004567a425678/1":                                "the target's name",
		"iscsi://10.0.0.5/naa.02004567a425678g/1":                               "the target's name",
		"iscsi://10.0.0.5/--logout/1":                                           "the target's name",
		"iscsi://10.0.0.5/iqn.2026-12.x:" + strings.Repeat("a", 224-14) + "/3":  "more than 223",
		"iscsi://" + strings.Repeat("1", 1024):                                  "more than 1024",
	} {
		if h, err := ParseHandle(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %q", text, h, err, want)
		}
	}
}

func FuzzHandle(f *testing.F) {
	for _, text := range []string{"iscsi://10.0.0.5:860,[2001:db8::5]:1,::1/iqn.2026-01.com.example:array/1", "iscsi://10.0.0.5/eui.02004567a425678d/3", "iscsi:////"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHandle(text)
		if err != nil {
			return
		}
		again, err := ParseHandle(h.String())
		if err != nil || again.String() != h.String() {
			t.Errorf("%q is printed as %q, which is %q, %v", text, h, again, err)
		}
		for _, p := range h.Portals {
			if strings.HasPrefix(p.String(), "-") {
				t.Errorf("the portal %s looks like an option", p)
			}
		}
	})
}
