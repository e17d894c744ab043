package load_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestLoadRefusesAFolderThatIsNoModule(t *testing.T) {
	many := map[string]string{}
	for i := range 256 + 1 {
		many[strings.Repeat("a", i+1)] = ""
	}
	tests := map[string]struct {
		files   fs.FS
		wantErr string
	}{
		"too many files": {files: moduletest.FS(many), wantErr: "more than 256 files"},
		"a huge file":    {files: moduletest.FS(map[string]string{"main.tf": strings.Repeat("#", (256<<10)+1)}), wantErr: "main.tf has more than"},
		"a symbolic link": {
			files:   fstest.MapFS{"main.tf": &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}},
			wantErr: "main.tf is not a regular file",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(tc.files)
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("want an error with %q, got %v", tc.wantErr, err)
			}
		})
	}
}

func TestLoadAllNamesTheFolderOfABrokenModule(t *testing.T) {
	fsys := fstest.MapFS{"embed.go": &fstest.MapFile{Data: []byte("package modules\n")}}
	for name, file := range moduletest.FS(moduletest.Module()) {
		fsys["example/"+name] = file
		fsys["other/"+name] = file
	}
	_, err := load.Modules(fsys)
	var broken *contract.Error
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), `is "example" in the folder other`) {
		t.Fatalf("want the folder named, got %v", err)
	}
	for name := range fsys {
		if strings.HasPrefix(name, "other/") {
			delete(fsys, name)
		}
	}
	loaded, err := load.Modules(fsys)
	if err != nil || len(loaded) != 1 || loaded[0].Name() != "example" {
		t.Errorf("want the one module, got %v, %v", loaded, err)
	}
}
