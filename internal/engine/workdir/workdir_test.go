package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMakeWorkDir(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Mkdir(filepath.Join(dir, "target"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Fatal(err)
	}
	got, err := Make(link, "t/9")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := filepath.EvalSymlinks(link); err != nil || got != want {
		t.Errorf("the folder is %s, want %s, %v: processes are found by the path that the kernel reports", got, want, err)
	}
	if info, err := os.Stat(got); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v, %v, want 0700", info.Mode(), err)
	}
	if _, err := Make(filepath.Join(dir, strings.Repeat("x", 100)), "t/9"); err == nil || !strings.Contains(err.Error(), "use a shorter one") {
		t.Errorf("a path too long for sockets returns %v, want an error", err)
	}
}

func TestLockWorkDirIsForOne(t *testing.T) {
	dir := t.TempDir()
	held, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "another running engine") {
		t.Errorf("a folder that is held returns %v, want an error", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
