package chaos

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCanariesAreFound(t *testing.T) {
	c := newCanaries()
	t.Cleanup(c.close)
	secret := c.fresh("a password")
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"plain":                   {"login failed: " + secret + "!", 1},
		"base64":                  {base64.StdEncoding.EncodeToString([]byte(secret)), 1},
		"base64 of the same kind": {base64.StdEncoding.EncodeToString([]byte(secret + "\n")), 1},
		"another":                 {strings.ToUpper(secret), 0},
	} {
		if found := c.in([]byte(tc.text)); len(found) != tc.want {
			t.Errorf("%s: %v", name, found)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "left"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := c.files(folder); len(found) != 1 || found[0].Harm != Leaked {
		t.Errorf("in a file: %v", found)
	}
}

func TestCanariesAreFoundInArguments(t *testing.T) {
	c := newCanaries()
	t.Cleanup(c.close)
	process := exec.Command("sh", "-c", "sleep 20; :", c.fresh("a token"))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if found := c.arguments(); len(found) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it is not found in the arguments of a process")
		}
	}
}
