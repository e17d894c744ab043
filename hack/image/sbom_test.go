package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTheListNamesEveryFileAndItsModules(t *testing.T) {
	made := small(t)
	var d document
	if err := json.Unmarshal(made.sbom, &d); err != nil {
		t.Fatal(err)
	}
	known, named := map[string]bool{d.ID: true}, map[string]bool{}
	for _, p := range d.Packages {
		if known[p.ID] {
			t.Errorf("two are called %s", p.ID)
		}
		known[p.ID] = true
	}
	for _, f := range d.Files {
		if known[f.ID] {
			t.Errorf("two are called %s", f.ID)
		}
		known[f.ID], named[f.Name] = true, true
	}
	for _, l := range made.layers {
		for _, f := range l.files {
			if f.mode.IsRegular() && f.path != sbomFile && !named["./"+f.path] {
				t.Errorf("/%s is not in the list", f.path)
			}
		}
	}
	linked := map[string]int{}
	for _, r := range d.Relationships {
		if !known[r.From] || !known[r.To] {
			t.Errorf("%s %s %s: one of them is not in the list", r.From, r.Type, r.To)
		}
		if r.Type == "STATIC_LINK" {
			linked[r.From]++
		}
	}
	if len(linked) != 4 { // the number of programs in small
		t.Errorf("modules were found in %v", linked)
	}
	at := slices.IndexFunc(d.Packages, func(p spdxPackage) bool { return p.Name == "stdlib" })
	if want := "pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"); at < 0 ||
		d.Packages[at].References[0].Locator != want {
		t.Errorf("the standard library is %v; want %s", d.Packages, want)
	}
	for _, id := range slices.Collect(maps.Keys(known)) {
		if !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(id) {
			t.Errorf("SPDX does not allow the name %s", id)
		}
	}
}

func TestTheListHasTheModulesThatAProgramWasLinkedFrom(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	made, err := fixed.list(host, []layer{newLayer("programs", program("usr/bin/test", self))})
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(made.document, &d); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, p := range d.Packages {
		versions[p.Name] = p.Version
	}
	if versions["github.com/google/go-containerregistry"] == "" {
		t.Errorf("the modules of this test are %v", versions)
	}
	if versions["machine-iac-operator"] != fixed.version {
		t.Errorf("the image has the version %q", versions["machine-iac-operator"])
	}
}

func TestAProgramThatIsNoneIsReported(t *testing.T) {
	script := filepath.Join(t.TempDir(), "tofu")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := fixed.list(host, []layer{newLayer("engines", program("usr/bin/tofu", script))})
	if err == nil || !strings.Contains(err.Error(), "reading the Go modules of /usr/bin/tofu") {
		t.Errorf("the error is %v", err)
	}
}
