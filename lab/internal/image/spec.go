package image

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Spec describes an image.
type Spec struct {
	Ref        string   // name under which a node finds it, e.g. "localhost/busybox:1"
	Layers     []string // root filesystem tars, lowest first
	Files      []File   // the top layer
	Links      []Link   // part of the top layer
	Entrypoint []string
	Cmd        []string
	Env        []string // NAME=VALUE
	User       string   // "65532" or "65532:65532"; root if empty
	WorkDir    string
	Labels     map[string]string
}

// File is a file of this machine to put into an image, executable for all.
type File struct {
	Path   string // in the image
	Source string // on this machine
}

// Link is a symbolic link in an image.
type Link struct {
	Path   string
	Target string
}

// validRef matches a registry or "localhost", any path, and a tag. containerd's CRI plugin
// normalises shorter names, so that the kubelet would not find the image.
var validRef = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

var validUser = regexp.MustCompile(`^([0-9]+(:[0-9]+)?)?$`)

// Validate reports the first thing that is wrong with the specification.
func (s Spec) Validate() error {
	if !validRef.MatchString(s.Ref) {
		return fmt.Errorf("image name %q is not complete: use registry/path:tag, for example localhost/berth:dev", s.Ref)
	}
	if strings.HasSuffix(s.Ref, ":latest") {
		return errors.New("the tag latest makes a kubelet pull the image from a registry: use another tag")
	}
	if !validUser.MatchString(s.User) {
		return fmt.Errorf("user %q: use a number, or number:number for user and group", s.User)
	}
	if len(s.Layers)+len(s.Files)+len(s.Links) == 0 {
		return errors.New("an image needs at least a layer, a file or a link")
	}
	seen := map[string]bool{}
	for _, p := range s.topPaths() {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			return fmt.Errorf("path %q in the image: use a clean absolute path", p)
		}
		if seen[p] {
			return fmt.Errorf("path %q is in the image twice", p)
		}
		seen[p] = true
	}
	return nil
}

func (s Spec) topPaths() []string {
	var all []string
	for _, f := range s.Files {
		all = append(all, f.Path)
	}
	for _, l := range s.Links {
		all = append(all, l.Path)
	}
	return all
}
