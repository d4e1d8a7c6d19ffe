package inventory

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"berth.dev/berth/hack/release/internal/pack"
)

// Licensed is a module with its licences.
type Licensed struct {
	Module
	// Licences by their SPDX identifiers.
	Licences []string
	// Texts are the module's licences and notices, below the module's path and version.
	Texts []pack.File
}

// named matches files with licences and with the notices that licences ask to pass on.
var named = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents)`)

// enough is how much of a file, in percent, must be the text of known licences. The rest are
// the names of those who gave it.
const enough = 75

// Licences reads the licences of modules.
func (s Sources) Licences(modules []Module) ([]Licensed, error) {
	var all []Licensed
	for _, m := range modules {
		l, err := s.licences(m)
		if err != nil {
			return nil, fmt.Errorf("looking for the licence of %s: %w", m, err)
		}
		all = append(all, l)
	}
	return all, nil
}

func (s Sources) licences(m Module) (Licensed, error) {
	dir, err := s.dir(m)
	if err != nil {
		return Licensed{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Licensed{}, err
	}
	l := Licensed{Module: m}
	for _, e := range entries {
		if !e.Type().IsRegular() || !named.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return Licensed{}, err
		}
		l.Texts = append(l.Texts, pack.File{Name: path.Join(m.String(), e.Name()), Mode: 0o644, Data: text})
		l.Licences = append(l.Licences, recognised(text)...)
	}
	slices.Sort(l.Licences)
	l.Licences = slices.Compact(l.Licences)
	if len(l.Licences) == 0 {
		return Licensed{}, fmt.Errorf("no file in %s has a known licence", dir)
	}
	return l, nil
}

// patents begins the library's own names for grants of patents, which come beside a licence
// and have no SPDX identifier.
const patents = "GooglePatent"

// recognised returns the SPDX identifiers of the licences that a text consists of.
func recognised(text []byte) []string {
	found := licensecheck.Scan(text)
	if found.Percent < enough {
		return nil
	}
	var ids []string
	for _, m := range found.Match {
		if !m.IsURL && !strings.HasPrefix(m.ID, patents) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Texts returns the licences and notices of all modules, in the order of their names.
func Texts(modules []Licensed) []pack.File {
	var all []pack.File
	for _, m := range modules {
		all = append(all, m.Texts...)
	}
	slices.SortFunc(all, func(a, b pack.File) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
