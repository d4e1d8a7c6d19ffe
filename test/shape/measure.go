package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// function is a function or method, without its comment.
type function struct {
	name, receiver string
	lines          int
	file           file
}

func functions(files []file) (all []function) {
	for _, f := range files {
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
				all = append(all, function{fn.Name.Name, receiver(fn), lines, f})
			}
		}
	}
	return all
}

// receiver returns the name of a method's type; empty for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// typeSize is how many methods a type has, in how many files.
type typeSize struct {
	folder, name   string
	methods, files int
}

// types returns the types with methods, the one with the most methods first.
func types(all []function) []typeSize {
	paths := map[typeSize]map[string]int{}
	for _, fn := range all {
		if fn.receiver == "" {
			continue
		}
		of := typeSize{folder: fn.file.folder, name: fn.receiver}
		if paths[of] == nil {
			paths[of] = map[string]int{}
		}
		paths[of][fn.file.path]++
	}
	var sizes []typeSize
	for of, in := range paths {
		for _, n := range in {
			of.methods += n
		}
		of.files = len(in)
		sizes = append(sizes, of)
	}
	slices.SortFunc(sizes, func(a, b typeSize) int {
		return cmp.Or(cmp.Compare(b.methods, a.methods), cmp.Compare(a.folder, b.folder), cmp.Compare(a.name, b.name))
	})
	return sizes
}

// names returns the names of the functions and methods of a folder.
func names(all []function, folder string) map[string]bool {
	found := map[string]bool{}
	for _, fn := range all {
		if fn.file.folder == folder {
			found[fn.name] = true
		}
	}
	return found
}

// common counts the names that all sets contain.
func common(sets ...map[string]bool) int {
	n := 0
	for name := range sets[0] {
		if !slices.ContainsFunc(sets[1:], func(s map[string]bool) bool { return !s[name] }) {
			n++
		}
	}
	return n
}

// backend is a provisioner, and the words that show that code is about it.
type backend struct {
	folder string
	words  *regexp.Regexp
}

var backends = []backend{
	{"internal/provision/lvm", regexp.MustCompile(`(?i)lvm|volumegroup|thinpool`)},
	{"internal/provision/zfs", regexp.MustCompile(`(?i)zfs|zpool|zvol|dataset`)},
	{"internal/provision/btrfs", regexp.MustCompile(`(?i)btrfs|subvolume`)},
}

// outside returns the files beyond the backend and the API that name it in their code.
func (b backend) outside(files []file) (paths []string) {
	for _, f := range files {
		if f.folder == b.folder || strings.HasPrefix(f.folder, b.folder+"/") || strings.HasPrefix(f.folder, "api/") {
			continue
		}
		if f.says(b.words) {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// says reports whether a name or a string in the code matches; comments do not count.
func (f file) says(words *regexp.Regexp) (found bool) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.Ident:
			found = found || words.MatchString(n.Name)
		case *ast.BasicLit:
			found = found || n.Kind == token.STRING && words.MatchString(n.Value)
		}
		return !found
	})
	return found
}

// circles returns the pairs of folders of internal that import each other, including the
// packages below them. Two packages cannot import each other: the compiler refuses that.
func circles(files []file) (pairs []string) {
	imports := map[[2]string]bool{}
	for _, f := range files {
		from, within := room(f.folder)
		for _, spec := range f.tree.Imports {
			to, known := room(strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), prefix))
			if within && known && from != to {
				imports[[2]string{from, to}] = true
			}
		}
	}
	for i := range imports {
		if i[0] < i[1] && imports[[2]string{i[1], i[0]}] {
			pairs = append(pairs, i[0]+" and "+i[1])
		}
	}
	slices.Sort(pairs)
	return pairs
}

// room returns the first folder of a path below internal.
func room(folder string) (name string, ok bool) {
	parts := strings.Split(filepath.ToSlash(folder), "/")
	if len(parts) < 2 || parts[0] != "internal" {
		return "", false
	}
	return parts[1], true
}

var decision = regexp.MustCompile(`(?i)(verdict|decision|outcome|obstacle|action)$`)

// decisions returns the types that stand for a decision.
func decisions(files []file) []string {
	found := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && decision.MatchString(spec.Name.Name) {
				found[strings.TrimPrefix(f.folder, "internal/")+"."+spec.Name.Name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

var vague = regexp.MustCompile(`(?i)\b(somebody|nobody|whoever)\b`)

// vagueLines counts the lines of comment that use the words "somebody", "nobody" or "whoever".
func vagueLines(files []file) (n int) {
	for _, f := range files {
		for _, group := range f.tree.Comments {
			for line := range strings.Lines(group.Text()) {
				if vague.MatchString(line) {
					n++
				}
			}
		}
	}
	return n
}
