package tofu

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeCLI writes an executable that prints output when asked for its `version`.
func fakeCLI(t *testing.T, dir, name, output string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	script := fmt.Sprintf("#!/bin/sh\ncat <<'END'\n%s\nEND\n", output)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	cases := map[string]struct {
		onPath  map[string]string // file name to what it prints
		file    string            // what FindOptions.Path is to name, among onPath
		options FindOptions
		want    string // "name version"
		wantErr []string
	}{
		"tofu comes before terraform": {
			onPath: map[string]string{"tofu": "OpenTofu v1.12.6\non linux_amd64", "terraform": "Terraform v1.11.4"},
			want:   "tofu 1.12.6",
		},
		"terraform where there is no tofu": {
			onPath: map[string]string{"terraform": "Terraform v1.11.4\non linux_amd64"},
			want:   "terraform 1.11.4",
		},
		"terraform where the tofu does not fit": {
			onPath:  map[string]string{"tofu": "OpenTofu v1.8.0", "terraform": "Terraform v1.11.4"},
			options: FindOptions{Constraint: "~> 1.11"},
			want:    "terraform 1.11.4",
		},
		"the one that is asked for": {
			onPath:  map[string]string{"tofu": "OpenTofu v1.12.6", "terraform": "Terraform v1.11.4"},
			options: FindOptions{Name: Terraform},
			want:    "terraform 1.11.4",
		},
		"a warning before the version": {
			onPath: map[string]string{"tofu": "Warning: no CLI configuration\n\nOpenTofu v1.12.6"},
			want:   "tofu 1.12.6",
		},
		"a pre-release counts as the release": {
			onPath: map[string]string{"tofu": "OpenTofu v1.12.6-dev"},
			want:   "tofu 1.12.6-dev",
		},
		"a file by its path, whatever its name": {
			onPath: map[string]string{"engine-1": "OpenTofu v1.12.6"},
			file:   "engine-1",
			want:   "tofu 1.12.6",
		},
		"none on PATH": {
			wantErr: []string{"tofu or terraform", DefaultConstraint, "not found", "install one"},
		},
		"none that fits says what there is": {
			onPath:  map[string]string{"tofu": "OpenTofu v1.8.0"},
			options: FindOptions{Name: OpenTofu},
			wantErr: []string{"/tofu is version 1.8.0", DefaultConstraint},
		},
		"a file that is something else": {
			onPath:  map[string]string{"tofu": "hello"},
			file:    "tofu",
			wantErr: []string{"/tofu", `"hello\n"`},
		},
		"a file that is the other engine": {
			onPath:  map[string]string{"tofu": "Terraform v1.11.4"},
			file:    "tofu",
			options: FindOptions{Name: OpenTofu},
			wantErr: []string{"it is terraform", "tofu is required"},
		},
		"a file of another version": {
			onPath:  map[string]string{"tofu": "OpenTofu v1.12.6"},
			file:    "tofu",
			options: FindOptions{Constraint: "< 1.12"},
			wantErr: []string{"version 1.12.6", "< 1.12", "install"},
		},
		"a file that is not there": {
			file:    "nothing",
			wantErr: []string{"/nothing", "no such file", "executable"},
		},
		"a constraint that is none": {
			options: FindOptions{Constraint: "newest"},
			wantErr: []string{`"newest"`, "~> 1.12"},
		},
		"an engine that is none": {
			options: FindOptions{Name: "pulumi"},
			wantErr: []string{`"pulumi"`, "tofu", "terraform"},
		},
		"OpenTofu is not installed from Terraform's releases": {
			options: FindOptions{Name: OpenTofu, Install: true, InstallDir: "x", InstallURL: "http://127.0.0.1:1"},
			wantErr: []string{"finding tofu", "not found"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, output := range tc.onPath {
				fakeCLI(t, dir, file, output)
			}
			t.Setenv("PATH", dir)
			if tc.file != "" {
				tc.options.Path = filepath.Join(dir, tc.file)
			}
			binary, err := Find(t.Context(), tc.options)
			if len(tc.wantErr) > 0 {
				expectTexts(t, err, tc.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := binary.Name + " " + binary.Version.String(); got != tc.want {
				t.Errorf("found %s, want %s", got, tc.want)
			}
			if !filepath.IsAbs(binary.Path) {
				t.Errorf("path %s is not absolute", binary.Path)
			}
		})
	}
}

func TestFindProbesInACleanEnvironment(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tofu")
	script := "#!/bin/sh\nif [ -n \"$TF_CLI_CONFIG_FILE$SECRET\" ] || [ \"$HOME\" != \"$PWD\" ]; then echo poisoned; else echo 'OpenTofu v1.12.6'; fi\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TF_CLI_CONFIG_FILE", "/nowhere")
	t.Setenv("SECRET", "hunter22")
	if _, err := Find(t.Context(), FindOptions{Path: path}); err != nil {
		t.Error(err)
	}
}

func TestFindSaysWhyItCannotInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	releases := httptest.NewServer(http.NotFoundHandler())
	defer releases.Close()
	dir := filepath.Join(t.TempDir(), "engines")
	_, err := Find(t.Context(), FindOptions{Install: true, InstallDir: dir, InstallURL: releases.URL})
	expectTexts(t, err, []string{"installing terraform " + DefaultConstraint, dir, "404", "put a binary on PATH"})
}

func expectTexts(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that names %q", want)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not name %q", err, text)
		}
	}
}
