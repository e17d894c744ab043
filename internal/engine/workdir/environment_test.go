package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReserved(t *testing.T) {
	reserved := Reserved{Names: []string{"HOME"}, Prefixes: []string{"TF_"}}
	cases := map[string]struct {
		environment, files map[string]string
		want               string
	}{
		"credentials are the caller's":           {environment: map[string]string{"ACME_TOKEN": "t"}, files: map[string]string{"ACME_FILE": "t"}},
		"a name that is the engine's":            {environment: map[string]string{"HOME": "/x"}, want: "HOME is reserved for the engine"},
		"a name that begins as the engine's do":  {environment: map[string]string{"TF_VAR_x": "1"}, want: "TF_VAR_x is reserved for the engine"},
		"a file under the engine's name":         {files: map[string]string{"TF_CLI_CONFIG_FILE": "x"}, want: "TF_CLI_CONFIG_FILE is reserved for the engine"},
		"no name":                                {environment: map[string]string{"": "x"}, want: "invalid environment variable"},
		"a zero byte, which would end the value": {environment: map[string]string{"A": "x\x00y"}, want: "invalid environment variable"},
		"a value and a file of one name":         {environment: map[string]string{"A": "x"}, files: map[string]string{"A": "y"}, want: "both a value and a file"},
		"a file that would lie elsewhere":        {files: map[string]string{"../A": "y"}, want: "cannot be used as a file name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := reserved.CheckFiles(tc.files, tc.environment)
			if err == nil {
				err = reserved.Check(tc.environment)
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWriteFilesIsForThisUserAlone(t *testing.T) {
	dir := t.TempDir()
	paths, err := WriteFiles(dir, map[string]string{"CLOUDS": "hunter22"})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(paths["CLOUDS"])
	if err != nil || string(content) != "hunter22" {
		t.Errorf("the file is %q, %v, want what was given", content, err)
	}
	for path, want := range map[string]os.FileMode{paths["CLOUDS"]: 0o600, filepath.Join(dir, FilesDir): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}
