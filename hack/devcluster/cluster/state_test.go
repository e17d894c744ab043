package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStateIsTheSameAfterSavingAndLoading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	want := &state{
		Ports:     map[portName]int{portEtcd: 20001, portAPIServer: 20002},
		Processes: map[Component]process{Etcd: {PID: 17, StartTicks: 1 << 60, BootID: "boot"}},
	}
	if err := want.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := loadState(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
}

func TestLoadState(t *testing.T) {
	cases := map[string]struct {
		content   *string
		wantError string
	}{
		"no file is an empty state":         {},
		"an empty object is an empty state": {content: ptr("{}")},
		"a damaged file says where and how to fix it": {
			content: ptr(`{"ports":`), wantError: "end the processes that it names by hand",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.json")
			if tc.content != nil {
				if err := os.WriteFile(path, []byte(*tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := loadState(path)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) || !strings.Contains(err.Error(), path) {
					t.Fatalf("error is %v, want one with %q and the path", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(newState(), got); diff != "" {
				t.Errorf("state differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteFileReplacesPrivatelyAndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "new" {
		t.Errorf("content is %q (%v), want new", data, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v (%v), want 0600", info.Mode(), err)
	}
	if err := writeFile(filepath.Join(dir, "missing", "file"), nil); err == nil {
		t.Error("writing into a missing folder succeeded")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("folder holds %v (%v), want the file alone", entries, err)
	}
}

func ptr[T any](value T) *T { return &value }
