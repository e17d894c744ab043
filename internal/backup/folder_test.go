package backup

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const raw = `{"version":4,"serial":3,"lineage":"l","resources":[]}`

// small is a backup of one state.
func small() *Backup {
	return &Backup{Made: time.Unix(1700000000, 0).UTC(), States: []State{{
		Format: stateFormat, Version: version, Namespace: "machines", Machine: "m", UID: "uid-1", Serial: 3, Lineage: "l", SHA256: Checksum([]byte(raw)),
		Record: map[string]string{"machine": "m"}, Attachments: map[string][]byte{"inputs": []byte("i")}, State: []byte(raw),
	}}}
}

// written writes a backup into a new folder.
func written(t *testing.T, b *Backup) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "backup")
	if err := write(t, name, b, false, false); err != nil {
		t.Fatal(err)
	}
	return name
}

func write(t *testing.T, name string, b *Backup, whole, force bool) error {
	t.Helper()
	folder, err := CreateFolder(name)
	if err != nil {
		return err
	}
	return errors.Join(b.Write(folder, nil, whole, force), folder.Close())
}

func TestAFolderThatOthersMayEnterIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(name, 0o755); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	if err := write(t, name, small(), false, false); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("%v, want an error with the fix", err)
	}
	if entries, err := os.ReadDir(name); err != nil || len(entries) > 0 {
		t.Errorf("it holds %v, %v", entries, err)
	}
}

func TestNothingIsWrittenThroughALink(t *testing.T) {
	elsewhere := t.TempDir()
	target := filepath.Join(elsewhere, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ link, to, want string }{
		"the folder itself":     {"", elsewhere, "is a symbolic link"},
		"a folder in it":        {"states", elsewhere, "escapes"},
		"a folder of it in it":  {"states", ".", "is no folder"},
		"a file in it":          {"states/machines/m.uid-1.json", target, "it is no plain file"},
		"a link out of nowhere": {"states/machines/m.uid-1.json", filepath.Join(elsewhere, "none"), "it is no plain file"},
		"its index":             {"index.json", target, "it is no plain file"},
	} {
		for _, force := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "backup")
				at := filepath.Join(folder, tc.link)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(tc.to, at); err != nil {
					t.Fatal(err)
				}
				if err := write(t, folder, small(), false, force); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				if content, err := os.ReadFile(target); err != nil || string(content) != "precious" {
					t.Errorf("the target of the link is %q, %v", content, err)
				}
				if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 1 {
					t.Errorf("beside the target is %v, %v", entries, err)
				}
			})
		}
	}
}

func TestWhatIsThereAndDiffersIsReplacedByForceOnly(t *testing.T) {
	folder := written(t, small())
	if err := write(t, folder, small(), false, false); err != nil {
		t.Errorf("the same again: %v", err)
	}
	changed := small()
	changed.States[0].Record["machine"] = "n"
	before, err := os.ReadFile(filepath.Join(folder, indexName))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t, folder, changed, false, false); err == nil || !strings.Contains(err.Error(), "differs; name another folder, or replace it with --force") {
		t.Errorf("another one: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(folder, indexName)); err != nil || string(after) != string(before) {
		t.Errorf("the index is %s, %v", after, err)
	}
	if err := write(t, folder, changed, false, true); err != nil {
		t.Errorf("by force: %v", err)
	}
	if b, err := Load(folder, nil); err != nil || b.States[0].Record["machine"] != "n" {
		t.Errorf("it has %+v, %v", b, err)
	}
}

func TestAnIndexGoesOnListingWhatWasWrittenBefore(t *testing.T) {
	folder := written(t, small())
	next := small()
	next.States[0].UID, next.States[0].Machine = "uid-2", "other"
	if err := write(t, folder, next, true, false); err != nil {
		t.Fatal(err)
	}
	if b, err := Load(folder, nil); err != nil || len(b.States) != 2 {
		t.Fatalf("it has %+v, %v; want both", b, err)
	}
	if b, err := Load(filepath.Join(folder, "states", "machines", "other.uid-2.json"), nil); err != nil || len(b.States) != 1 || b.States[0].UID != "uid-2" {
		t.Errorf("one file is %+v, %v", b, err)
	}
	if err := write(t, folder, next, true, true); err != nil {
		t.Fatal(err)
	}
	if b, err := Load(folder, nil); err != nil || len(b.States) != 1 {
		t.Errorf("replaced whole, it has %+v, %v; want one", b, err)
	}
}

func TestADamagedBackupIsRefused(t *testing.T) {
	file := filepath.Join("states", "machines", "m.uid-1.json")
	for name, tc := range map[string]struct {
		damage func(t *testing.T, folder string)
		want   string
	}{
		"another content": {func(t *testing.T, folder string) { edit(t, filepath.Join(folder, file), `"serial": 3`, `"serial": 4`) }, "the file is damaged, or of another backup"},
		"another content with its checksum": {func(t *testing.T, folder string) {
			edit(t, filepath.Join(folder, file), `"serial": 3`, `"serial": 4`)
			resum(t, folder, file)
		}, "serial 3 and lineage \"l\", and the file says 4"},
		"another state in it": {func(t *testing.T, folder string) {
			edit(t, filepath.Join(folder, file), `"sha256": "`, `"sha256": "0`)
			resum(t, folder, file)
		}, "the checksum of its state"},
		"a newer version": {func(t *testing.T, folder string) {
			edit(t, filepath.Join(folder, indexName), `"version": 1`, `"version": 2`)
		}, "use the kubectl-machine that wrote it, or a newer one"},
		"no index": {func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, indexName)); err != nil {
				t.Fatal(err)
			}
		}, "it has no index.json"},
		"a file that is gone": {func(t *testing.T, folder string) { _ = os.Remove(filepath.Join(folder, file)) }, "no such file"},
		"a path out of it": {func(t *testing.T, folder string) {
			edit(t, filepath.Join(folder, indexName), `"path": "states`, `"path": "../states`)
		}, "outside of the folder"},
		"another kind of file": {func(t *testing.T, folder string) { edit(t, filepath.Join(folder, indexName), `"State"`, `"Stat"`) }, "knows no such file"},
		"another Machine's state": {func(t *testing.T, folder string) {
			edit(t, filepath.Join(folder, indexName), `"uid": "uid-1"`, `"uid": "uid-9"`)
		}, "the index says another"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := written(t, small())
			tc.damage(t, folder)
			if _, err := Load(folder, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestANameThatIsNoFileIsRefused(t *testing.T) {
	for _, name := range []string{"../m", "a/b", ".hidden", "a b"} {
		b := small()
		b.States[0].Machine = name
		folder := filepath.Join(t.TempDir(), "backup")
		if err := write(t, folder, b, false, false); err == nil || !strings.Contains(err.Error(), "is no name of a file") {
			t.Errorf("a Machine %q: %v", name, err)
		}
	}
}

// edit replaces a text in a file.
func edit(t *testing.T, file, from, to string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), from) {
		t.Fatalf("%s lacks %s:\n%s", file, from, content)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// resum writes the checksum of a file into the index.
func resum(t *testing.T, folder, file string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	listing, err := os.ReadFile(filepath.Join(folder, indexName))
	if err != nil {
		t.Fatal(err)
	}
	var index Index
	if err := json.Unmarshal(listing, &index); err != nil {
		t.Fatal(err)
	}
	index.Files[0].SHA256 = Checksum(content)
	if listing, err = encode(index); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, indexName), listing, 0o600); err != nil {
		t.Fatal(err)
	}
}
