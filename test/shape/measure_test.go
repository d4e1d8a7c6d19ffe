package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sources parses files by path.
func sources(t *testing.T, texts ...string) (files []file) {
	t.Helper()
	for i := 0; i < len(texts); i += 2 {
		f, err := parseText(texts[i], []byte(texts[i+1]))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func TestMethodsAreCountedByTypeAndFile(t *testing.T) {
	files := sources(t,
		"a/x.go", "package a\ntype T struct{}\nfunc (T) One() {}\nfunc (*T) Two() {}\ntype G[K any] struct{}\nfunc (g *G[K]) Only() {}\nfunc free() {}\n",
		"a/y.go", "package a\nfunc (t *T) Three() {}\n",
		"b/z.go", "package b\ntype T struct{}\nfunc (T) Other() {}\n",
	)
	want := []typeSize{{"a", "T", 3, 2}, {"a", "G", 1, 1}, {"b", "T", 1, 1}}
	if diff := cmp.Diff(want, types(functions(files)), cmp.AllowUnexported(typeSize{})); diff != "" {
		t.Error(diff)
	}
}

func TestNamesThatAllPackagesHaveAreCountedOnce(t *testing.T) {
	all := functions(sources(t,
		"a/x.go", "package a\nfunc load() {}\nfunc plan() {}\n",
		"a/y.go", "package a\ntype T struct{}\nfunc (T) load() {}\n",
		"b/x.go", "package b\nfunc load() {}\nfunc learn() {}\n",
	))
	if got := common(names(all, "a"), names(all, "b")); got != 1 {
		t.Errorf("%d names are common, want 1: load", got)
	}
}

func TestAFileNamesABackendInItsCodeAndNotInItsComments(t *testing.T) {
	files := sources(t,
		"internal/agent/code.go", "package agent\nvar zpools int\n",
		"internal/agent/text.go", "package agent\nvar kind = \"ZFS\"\n",
		"internal/agent/comment.go", "// Package agent knows ZFS.\npackage agent\n",
		"internal/provision/zfs/own.go", "package zfs\n",
		"api/v1alpha1/pool.go", "package v1alpha1\nvar ZFS int\n",
	)
	for _, b := range backends {
		var want []string
		if strings.HasSuffix(b.folder, "zfs") {
			want = []string{"internal/agent/code.go", "internal/agent/text.go"}
		}
		if diff := cmp.Diff(want, b.outside(files)); diff != "" {
			t.Errorf("%s: %s", b.folder, diff)
		}
	}
}

func TestFoldersThatImportEachOtherAreFound(t *testing.T) {
	files := sources(t,
		"internal/csi/x.go", "package csi\nimport _ \"berth.dev/berth/internal/agent/report\"\n",
		"internal/agent/report/x.go", "package report\nimport _ \"berth.dev/berth/internal/csi\"\nimport _ \"berth.dev/berth/internal/run\"\n",
		"internal/run/x.go", "package run\nimport _ \"os\"\n",
	)
	if diff := cmp.Diff([]string{"agent and csi"}, circles(files)); diff != "" {
		t.Error(diff)
	}
}

func TestTheTableNamesLargeTypesAndCountsLongFunctions(t *testing.T) {
	text := "package a\ntype T struct{}\ntype Verdict int\n// somebody calls it\n"
	for i := range mostMethods + 1 {
		text += "func (T) M" + string(rune('A'+i)) + "() {}\n"
	}
	text += "func long() {" + strings.Repeat("\n", mostLines) + "}\n"
	var out bytes.Buffer
	if err := report(&out, sources(t, "internal/a/x.go", text)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.T: 26 in 1 files", "a.Verdict", " 27, 1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
