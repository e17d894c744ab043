package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// fakeLayout creates a data folder, and a folder with shell scripts as binaries.
func fakeLayout(t *testing.T, scripts map[Component]string) layout {
	t.Helper()
	l := layout{dir: filepath.Join(shortdir.New(t), "data"), bin: t.TempDir()} // for sockets
	if err := l.makeFolders(); err != nil {
		t.Fatal(err)
	}
	for component, script := range scripts {
		if err := os.WriteFile(l.binary(component), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestParseComponent(t *testing.T) {
	for _, want := range Components() {
		if got, err := ParseComponent(string(want)); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if _, err := ParseComponent("kubelet"); err == nil || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("error is %v, want one that lists the names", err)
	}
}

func TestCheckBinariesNamesEveryMissingOne(t *testing.T) {
	l := fakeLayout(t, map[Component]string{Etcd: "", KWOK: ""})
	if err := os.WriteFile(l.binary(APIServer), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := l.checkBinaries()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"kube-apiserver, kube-controller-manager, kube-scheduler;", l.bin, "make tools"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func TestCheckOwn(t *testing.T) {
	cases := map[string]struct {
		files     []string
		wantError string
	}{
		"an empty folder":                            {},
		"a cluster's folder with a guest":            {files: []string{"state.json", "operator.kubeconfig"}},
		"what a start that was cut short has left":   {files: []string{"pki", "lock"}},
		"a folder with other files":                  {files: []string{"pki", "go.mod"}, wantError: "go.mod"},
		"a folder with many other files names a few": {files: []string{"a", "b", "c", "d"}, wantError: "(a, b, c)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := layout{dir: t.TempDir()}
			for _, file := range tc.files {
				if err := os.WriteFile(filepath.Join(l.dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := l.checkOwn()
			if tc.wantError == "" && err != nil {
				t.Errorf("error is %v, want none", err)
			}
			if tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("error is %v, want one with %q", err, tc.wantError)
			}
		})
	}
	if err := (layout{dir: filepath.Join(t.TempDir(), "none")}).checkOwn(); err != nil {
		t.Errorf("a folder that is not there yet: %v", err)
	}
}
