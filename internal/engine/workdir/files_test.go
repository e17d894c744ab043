package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAFileOfAnEngineLeadsNowhere tries what a provider may put where the manager reads a state.
func TestAFileOfAnEngineLeadsNowhere(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "token")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"plain":  os.WriteFile(filepath.Join(dir, "plain"), []byte("state"), 0o600),
		"long":   os.WriteFile(filepath.Join(dir, "long"), []byte("longer than the limit"), 0o600),
		"link":   os.Symlink(secret, filepath.Join(dir, "link")),
		"folder": os.Symlink(outside, filepath.Join(dir, "folder")),
		"pipe":   syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	late := time.AfterFunc(10*time.Second, func() { panic("it waits for a pipe") })
	defer late.Stop()
	for name, want := range map[string]string{
		"plain": "", "long": "has more than 10 bytes", "link": "escapes", "folder/token": "escapes", "pipe": "not a regular file", "none": "no such file",
	} {
		content, err := ReadFile(dir, name, 10)
		switch {
		case want == "" && (err != nil || string(content) != "state"):
			t.Errorf("%s: got %q, %v", name, content, err)
		case want != "" && (err == nil || content != nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %q, %v, want an error with %q", name, content, err, want)
		}
	}
}
