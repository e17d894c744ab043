package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestBundleHasTheSystemsAuthoritiesToo(t *testing.T) {
	system := filepath.Join(t.TempDir(), "system.pem")
	if err := os.WriteFile(system, []byte("system"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		system []string
		want   string
	}{
		"the first file that is there": {system: []string{"/nowhere", system, "/etc/passwd"}, want: "system\nmine\n"},
		"a system that trusts nobody":  {system: []string{"/nowhere"}, want: "mine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bundle{dir: filepath.Join(t.TempDir(), "ca"), system: tc.system}
			path, err := b.file("mine\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, path); got != tc.want {
				t.Errorf("the file has %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBundleWithoutAuthoritiesIsNoFile(t *testing.T) {
	b := &bundle{dir: filepath.Join(t.TempDir(), "ca")}
	if path, err := b.file(""); path != "" || err != nil {
		t.Errorf("got %q, %v", path, err)
	}
}

// Runs that began before a change still read the file that they were pointed to.
func TestBundleKeepsTheFileFromBeforeAChange(t *testing.T) {
	b := &bundle{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.dir, "0a.pem"), []byte("of a predecessor"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(authorities string) string {
		t.Helper()
		path, err := b.file(authorities)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != authorities {
			t.Errorf("the file has %q, want %q", got, authorities)
		}
		return path
	}
	first := file("first\n")
	if again := file("first\n"); again != first {
		t.Errorf("the same authorities are in %s and %s", first, again)
	}
	if diff := cmp.Diff([]string{first}, filesIn(t, b.dir)); diff != "" {
		t.Errorf("files at first (-want +got):\n%s", diff)
	}
	second := file("second\n")
	if read(t, first) != "first\n" {
		t.Error("the file that runs use has changed")
	}
	third := file("third\n")
	if diff := cmp.Diff(map[string]bool{second: true, third: true}, setOf(filesIn(t, b.dir))); diff != "" {
		t.Errorf("files after two changes (-want +got):\n%s", diff)
	}
	if err := os.Remove(third); err != nil {
		t.Fatal(err)
	}
	if file("third\n") != third {
		t.Error("a file that somebody removed is not written again")
	}
}

func TestBundleIsFoundFromAnyFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	reader, err := New(Options{Client: fake.NewClientBuilder().Build(), Dir: "ca"})
	if err != nil {
		t.Fatal(err)
	}
	if path, err := reader.bundle.file("mine\n"); err != nil || !filepath.IsAbs(path) {
		t.Errorf("got %q, %v; want an absolute path", path, err)
	}
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
