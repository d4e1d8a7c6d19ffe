package iscsi

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Scheme begins each Handle.
const Scheme = "iscsi://"

// Bounds of a handle.
const (
	// DefaultPort is the port of iSCSI (RFC 7143, section 4.1).
	DefaultPort = 3260

	maxHandle  = 1024
	maxPortals = 8
	// maxName is the longest name of a target (RFC 7143, section 4.2.7.1), in bytes.
	maxName = 223
	// maxLUN is the largest number of the flat address space (SAM-5, section 4.7).
	maxLUN = 1<<14 - 1
)

// Handle names a logical unit: iscsi://10.0.0.5:3260,10.0.0.6/iqn.2026-01.com.example:array/1.
type Handle struct {
	// Portals of the target, in the order in which a login tries them. One session is made.
	Portals []netip.AddrPort
	// Target is the name of the target.
	Target string
	LUN    int
}

// ParseHandle reads a handle. Portals are addresses, because a name may lead elsewhere tomorrow.
func ParseHandle(text string) (Handle, error) {
	if len(text) > maxHandle {
		return Handle{}, fmt.Errorf("the handle has more than %d bytes", maxHandle)
	}
	rest, ok := strings.CutPrefix(text, Scheme)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return Handle{}, fmt.Errorf("%q is not of the form iscsi://PORTAL[:PORT][,PORTAL...]/TARGET/LUN", text)
	}
	h := Handle{Target: parts[1]}
	portals := strings.Split(parts[0], ",")
	if len(portals) > maxPortals {
		return Handle{}, fmt.Errorf("%d portals: at most %d", len(portals), maxPortals)
	}
	for _, p := range portals {
		portal, err := parsePortal(p)
		if err != nil {
			return Handle{}, err
		}
		h.Portals = append(h.Portals, portal)
	}
	if err := checkName(h.Target); err != nil {
		return Handle{}, err
	}
	lun, _ := strconv.ParseUint(parts[2], 10, 16) // zero, or beyond maxLUN, with an error
	if lun > maxLUN || strconv.FormatUint(lun, 10) != parts[2] {
		return Handle{}, fmt.Errorf("the LUN %q is no number from 0 to %d", parts[2], maxLUN)
	}
	h.LUN = int(lun) //nolint:gosec // at most maxLUN
	return h, nil
}

// UnitOf is the part of a handle that says which unit it leads to: target and number, for which ParseHandle accepts one
// spelling alone. It reads no more, because all names of a cluster are compared with each other.
func UnitOf(text string) string {
	_, unit, is := strings.Cut(strings.TrimPrefix(text, Scheme), "/")
	if !is {
		return text
	}
	return unit
}

func parsePortal(text string) (netip.AddrPort, error) {
	fail := fmt.Errorf("the portal %q is no address, or address and port: 10.0.0.5, 10.0.0.5:3260, [2001:db8::5]:3260", text)
	bare, bracketed := strings.CutPrefix(text, "[")
	if bracketed && strings.HasSuffix(bare, "]") {
		text = strings.TrimSuffix(bare, "]")
	}
	portal, err := netip.ParseAddrPort(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Is4() && bracketed {
			return netip.AddrPort{}, fail
		}
		portal = netip.AddrPortFrom(addr, DefaultPort)
	}
	if a := portal.Addr(); a.Zone() != "" || a.Is4In6() || a.IsUnspecified() || a.IsMulticast() || portal.Port() == 0 {
		return netip.AddrPort{}, fail
	}
	return portal, nil
}

// checkName refuses what is no name of a target: iqn.YYYY-MM.AUTHORITY[:TEXT], eui. with 16
// hexadecimal digits, or naa. with 16 or 32 (RFC 7143, section 4.2.7). A name is compared byte by
// byte, and its standard form (RFC 3722) is in lower case. Letters beyond ASCII are refused.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the target's name has more than %d bytes", maxName)
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != ':' {
			return fmt.Errorf("the target's name %q has %q: only a-z, 0-9, '-', '.' and ':' are allowed", name, r)
		}
	}
	kind, rest, _ := strings.Cut(name, ".")
	switch {
	case kind == "iqn" && isQualified(rest), kind == "eui" && isHex(rest, 16), kind == "naa" && (isHex(rest, 16) || isHex(rest, 32)):
		return nil
	}
	return fmt.Errorf("the target's name %q is not of the form iqn.2026-01.com.example:name, eui.0123456789abcdef or naa.0123456789abcdef", name)
}

func isQualified(rest string) bool {
	date, authority, _ := strings.Cut(rest, ".")
	authority, _, _ = strings.Cut(authority, ":")
	if len(date) != len("2026-01") || date[4] != '-' || authority == "" || strings.HasPrefix(authority, ".") || strings.HasSuffix(authority, ".") {
		return false
	}
	_, err := strconv.ParseUint(date[:4], 10, 16)
	month, _ := strconv.ParseUint(date[5:], 10, 8) // zero with an error
	return err == nil && month >= 1 && month <= 12
}

func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

// String returns the handle in its standard form.
func (h Handle) String() string {
	portals := make([]string, len(h.Portals))
	for i, p := range h.Portals {
		portals[i] = p.String()
		if p.Port() == DefaultPort {
			portals[i] = p.Addr().String()
		}
	}
	return fmt.Sprintf("%s%s/%s/%d", Scheme, strings.Join(portals, ","), h.Target, h.LUN)
}
