package device

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"berth.dev/berth/internal/provision"
)

// maxIdentity keeps a pool's name well below the limit for the name of any object.
const maxIdentity = 128

var unsafeRun = regexp.MustCompile(`[^A-Za-z0-9_+.-]+`)

// poolName returns a disk's name as a pool, empty for a disk without identity. Two
// identities that become one name are treated as one identity: neither disk is used.
func poolName(identity string) string {
	name := strings.Trim(unsafeRun.ReplaceAllString(identity, "_"), "_-")
	if name == "" {
		return ""
	}
	if len(name) > maxIdentity {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxIdentity-17] + "-" + hex.EncodeToString(sum[:8])
	}
	return provision.DiskPrefix + name
}
