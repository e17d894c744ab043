package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// places returns a reference each to a web server and to a registry, and how to end both.
func places(t *testing.T, options *Options) (references map[string]string, end func()) {
	t.Helper()
	packed := pack(t)
	web, webOptions := newWeb(t, packed.Archive)
	registry, location := newRegistry(t)
	pushed, err := packed.Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	options.Transport, options.Backoff = webOptions.Transport, webOptions.Backoff
	return map[string]string{
			"a web server": web.URL + "/acme.tar.gz@" + sum(packed.Archive),
			"a registry":   pushed.String(),
		}, func() {
			web.Close()
			registry.Close()
		}
}

func TestARestartNeedsNoRegistry(t *testing.T) {
	options := Options{CacheDir: filepath.Join(t.TempDir(), "not", "made", "yet")}
	references, end := places(t, &options)
	for _, reference := range references {
		if _, err := Fetch(t.Context(), reference, options); err != nil {
			t.Fatal(err)
		}
	}
	end()
	_, want := example(t)
	for name, reference := range references {
		t.Run(name, func(t *testing.T) {
			got, err := Fetch(t.Context(), reference, options)
			if err != nil || got.Reference() != want.Reference() {
				t.Errorf("got %v, %v; want it from the cache", got, err)
			}
			withoutCache := options
			withoutCache.CacheDir = ""
			if got, err := Fetch(t.Context(), reference, withoutCache); err == nil {
				t.Errorf("got %v without a cache; want an error", got)
			}
		})
	}
	info, err := os.Stat(options.CacheDir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache is %v, %v; want a private folder", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(options.CacheDir, "*.new")); len(left) > 0 {
		t.Errorf("the cache has %q left", left)
	}
}

func TestABrokenCacheIsReplaced(t *testing.T) {
	long.Test(t)
	spoilt := map[string]func(path string) error{
		"an entry that has changed": func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) },
		"an entry that was cut off": func(path string) error { return os.Truncate(path, 100) },
		"an entry that is empty":    func(path string) error { return os.Truncate(path, 0) },
		"an entry that grew":        func(path string) error { return os.Truncate(path, module.MaxArchiveBytes+1) },
	}
	for name, spoil := range spoilt {
		t.Run(name, func(t *testing.T) {
			options := Options{CacheDir: t.TempDir()}
			references, end := places(t, &options)
			for _, reference := range references {
				if _, err := Fetch(t.Context(), reference, options); err != nil {
					t.Fatal(err)
				}
			}
			entries, err := filepath.Glob(filepath.Join(options.CacheDir, "sha256-*"))
			if err != nil || len(entries) != 2 { // the archive is the same in both
				t.Fatalf("got %q, %v", entries, err)
			}
			for _, entry := range entries {
				if err := spoil(entry); err != nil {
					t.Fatal(err)
				}
			}
			logged := record(&options)
			for _, reference := range references {
				if _, err := Fetch(t.Context(), reference, options); err != nil {
					t.Errorf("got %v; want it fetched again", err)
				}
			}
			if strings.Count(logged.String(), "Broken entry in the cache") != 2 {
				t.Errorf("it is logged as\n%s", logged)
			}
			end()
			for _, reference := range references {
				if _, err := Fetch(t.Context(), reference, options); err != nil {
					t.Errorf("got %v; want what was fetched again to be kept", err)
				}
			}
		})
	}
}

func TestACacheThatCannotBeWrittenStopsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	for name, dir := range map[string]string{"a file in the folder's place": file, "a folder in the entry's place": taken} {
		t.Run(name, func(t *testing.T) {
			options := Options{CacheDir: dir}
			references, _ := places(t, &options)
			reference := references["a web server"]
			_, digest := cut(reference)
			if dir == taken {
				if err := os.MkdirAll(filepath.Join(cache{dir: dir}.path(digest), "x"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			logged := record(&options)
			if _, err := Fetch(t.Context(), reference, options); err != nil || !strings.Contains(logged.String(), "Cannot cache a provider module") {
				t.Errorf("got %v; want it to work, and this in the log:\n%s", err, logged)
			}
		})
	}
}
