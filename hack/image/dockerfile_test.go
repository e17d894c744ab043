package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// entry is a file's metadata in an image.
type entry struct {
	Mode  fs.FileMode
	Owner int
	Link  string
}

func entries(t *testing.T, archive io.Reader) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != header.Gid || !header.ModTime.Equal(fixed.created) {
			t.Errorf("%s belongs to %d:%d and is of %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		out[strings.TrimSuffix(header.Name, "/")] = entry{
			Mode: header.FileInfo().Mode(), Owner: header.Uid, Link: header.Linkname,
		}
	}
}

func TestTheDockerfileGivesTheSameImage(t *testing.T) {
	long.Test(t)
	made := small(t)
	staged := filepath.Join(t.TempDir(), "layers")
	if err := stage(staged, made.layers, fixed.created); err != nil {
		t.Fatal(err)
	}
	if err := stage(staged, made.layers, fixed.created); err == nil ||
		!strings.Contains(err.Error(), "name a new folder") {
		t.Errorf("staging into a folder with files: %v", err)
	}
	folder := filepath.Join(t.TempDir(), "image")
	if err := fixed.write(folder, []content{made}); err != nil {
		t.Fatal(err)
	}
	image := imageOf(t, folder)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	docker := readDockerfile(t, "../../Dockerfile")
	if len(docker.copies) != len(layers) {
		t.Fatalf("the Dockerfile copies %d layers of %d", len(docker.copies), len(layers))
	}
	for at, l := range layers {
		archive, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entries(t, archive), docker.copies[at].entries(t, staged)); diff != "" {
			t.Errorf("layer %s (-image +Dockerfile):\n%s", made.layers[at].name, diff)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Config, docker.config); diff != "" {
		t.Errorf("configuration (-image +Dockerfile):\n%s", diff)
	}
}

// dockerfile is the last stage of a Dockerfile.
type dockerfile struct {
	copies []copied
	config v1.Config
}

type copied struct {
	from, to string
	owner    int
}

var (
	copyLine  = regexp.MustCompile(`^COPY --from=build (?:--chown=(\d+):(\d+) )?/layers/(\S+) (/\S*)$`)
	labelPart = regexp.MustCompile(`(\S+)="([^"]*)"`)
)

func readDockerfile(t *testing.T, path string) dockerfile {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(strings.ReplaceAll(string(raw), "\\\n", ""), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	out := dockerfile{config: v1.Config{Labels: map[string]string{}}}
	for line := range strings.Lines(last) {
		line = strings.TrimSpace(line)
		instruction, rest, _ := strings.Cut(line, " ")
		switch instruction {
		case "COPY":
			found := copyLine.FindStringSubmatch(line)
			if found == nil || found[1] != found[2] {
				t.Fatalf("this test cannot read %q", line)
			}
			one := copied{from: found[3], to: found[4]}
			if found[1] != "" {
				one.owner = owner
			}
			out.copies = append(out.copies, one)
		case "LABEL":
			for _, found := range labelPart.FindAllStringSubmatch(rest, -1) {
				out.config.Labels[found[1]] = strings.ReplaceAll(found[2], "${VERSION}", fixed.version)
			}
		case "ENV":
			out.config.Env = append(out.config.Env, rest)
		case "WORKDIR":
			out.config.WorkingDir = rest
		case "USER":
			out.config.User = rest
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &out.config.Entrypoint); err != nil {
				t.Fatal(err)
			}
		case "ARG", "":
		default:
			t.Fatalf("this test cannot read %q", line)
		}
	}
	return out
}

// entries returns what COPY adds to the image. It creates missing parent folders as root, and keeps existing ones.
func (c copied) entries(t *testing.T, staged string) map[string]entry {
	t.Helper()
	source := filepath.Join(staged, filepath.FromSlash(c.from))
	to := strings.Trim(c.to, "/")
	out := map[string]entry{}
	for folder := filepath.Dir(to); folder != "."; folder = filepath.Dir(folder) {
		out[folder] = entry{Mode: fs.ModeDir | 0o755}
	}
	err := filepath.WalkDir(source, func(path string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, path)
		if name = filepath.Join(to, name); err != nil || name == "." {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		one := entry{Mode: info.Mode(), Owner: c.owner}
		if info.Mode()&fs.ModeSymlink != 0 {
			one.Link, err = os.Readlink(path)
		} else if !info.ModTime().Equal(fixed.created) {
			t.Errorf("%s is of %s", path, info.ModTime())
		}
		out[name] = one
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
