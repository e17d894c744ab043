package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// elsewhere are programs in cmd that users run, so that the image omits them.
var elsewhere = []string{"kubectl-machine"}

const (
	share  = "usr/share/machine-iac"
	mirror = "mirror/registry.opentofu.org/"
	// terraformMirror has the same providers under the names that HashiCorp's terraform looks up.
	terraformMirror = "mirror/registry.terraform.io/"
)

// content is the content of the image for one platform.
type content struct {
	platform v1.Platform
	layers   []layer
	// sbom is the software bill of materials, which the image contains too.
	sbom []byte
}

// content builds the programs and tools for a platform, and returns their layers, the most stable first.
func (s source) content(ctx context.Context, platform v1.Platform) (content, error) {
	tools, err := s.tools(ctx, platform)
	if err != nil {
		return content{}, err
	}
	programs, err := s.programs(ctx, platform)
	if err != nil {
		return content{}, err
	}
	engines, providers := toolFiles(tools)
	added, err := addedProviders(s.providers, platform)
	if err != nil {
		return content{}, err
	}
	providers = append(providers, without(added, providers)...)
	listed, err := manifest(providers)
	if err != nil {
		return content{}, err
	}
	providers = append(providers, listed)
	manifests, err := payload(filepath.Join("install", "openshift"))
	if err != nil {
		return content{}, err
	}
	programs = append(append(programs, manifests...), file{path: share + "/LICENSE", mode: 0o644, from: "LICENSE"})
	layers := []layer{system(), home(), newLayer("engines", engines...), newLayer("providers", providers...)}
	started := time.Now()
	list, err := s.list(platform, append(layers, newLayer("programs", programs...)))
	if err != nil {
		return content{}, err
	}
	s.step(started, "%s: list of %d files and their Go modules", platform, list.files)
	programs = append(programs, file{path: sbomFile, mode: 0o644, content: list.document})
	return content{platform: platform, layers: append(layers, newLayer("programs", programs...)),
		sbom: list.document}, nil
}

func (s source) programs(ctx context.Context, platform v1.Platform) ([]file, error) {
	names, err := programNames("cmd")
	if err != nil {
		return nil, err
	}
	started := time.Now()
	folder := filepath.Join("dist", "programs", platform.OS+"_"+platform.Architecture)
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + s.version,
		"-o", folder + string(filepath.Separator)}
	var files []file
	for _, name := range names {
		arguments = append(arguments, "./cmd/"+name)
		files = append(files, program("usr/bin/"+name, filepath.Join(folder, name)))
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Env = environment(platform)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the programs for %s: %w: %s", platform, err, bytes.TrimSpace(out))
	}
	s.step(started, "%s: built %s", platform, strings.Join(names, ", "))
	return files, nil
}

// payload returns the manifests that an OpenShift release payload takes from its operators' images.
func payload(folder string) ([]file, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests for OpenShift: %w", err)
	}
	var files []file
	for _, entry := range entries {
		files = append(files, file{path: "manifests/" + entry.Name(), mode: 0o644,
			from: filepath.Join(folder, entry.Name())})
	}
	return files, nil
}

func programNames(folder string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*", "main.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range found {
		if name := filepath.Base(filepath.Dir(file)); !slices.Contains(elsewhere, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no program for the image", folder)
	}
	return names, nil
}

// tools builds the engines, their plugins and the providers, and returns the files of each by their path below bin/.
func (s source) tools(ctx context.Context, platform v1.Platform) (map[string]string, error) {
	bin := "bin"
	if platform.OS != runtime.GOOS || platform.Architecture != runtime.GOARCH {
		bin = filepath.Join("bin", platform.OS+"_"+platform.Architecture)
	}
	list := s.toolScript(ctx, platform, bin, "--files")
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tools: %s: %w", list, err)
	}
	names, files := imageTools(listed)
	build := s.toolScript(ctx, platform, bin, names...)
	build.Stdout, build.Stderr = s.out, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the tools for %s: %w", platform, err)
	}
	tools := map[string]string{}
	for _, name := range files {
		tools[name] = filepath.Join(bin, filepath.FromSlash(name))
	}
	return tools, nil
}

func (s source) toolScript(ctx context.Context, platform v1.Platform, bin string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "hack/tools.sh", arguments...)
	// the image contains no downloaded binaries
	command.Env = append(environment(platform), "BIN_DIR="+absolute(bin), "TOOLS=build")
	return command
}

func absolute(folder string) string {
	out, err := filepath.Abs(folder)
	if err != nil { // the working directory no longer exists; the script reports it
		return folder
	}
	return out
}

// imageTools returns the tools that belong in the image, and their files: the HCL and the Pulumi engine with their
// plugins. The other tools serve tests. lines are the output of 'hack/tools.sh --files'.
func imageTools(lines []byte) (names, files []string) {
	for scanner := bufio.NewScanner(bytes.NewReader(lines)); scanner.Scan(); {
		name, file, ok := strings.Cut(scanner.Text(), "|")
		if ok && (name == "tofu-image" || strings.HasPrefix(name, "pulumi") || strings.HasPrefix(name, "provider-")) {
			names, files = append(names, name), append(files, file)
		}
	}
	return names, files
}

// toolFiles returns the paths of tools in the image, separately for engines and their extensions. Pulumi starts
// language hosts from PATH, which in a run is its own folder.
func toolFiles(tools map[string]string) (engines, providers []file) {
	for name, from := range tools {
		name = strings.TrimPrefix(name, "image/") // the engine with all its state backends
		if !strings.Contains(name, "/") {
			engines = append(engines, program("usr/bin/"+name, from))
			continue
		}
		providers = append(providers, program(path.Join(share, name), from))
		if provider, ok := strings.CutPrefix(path.Dir(name), mirror); ok {
			providers = append(providers, link(path.Join(share, terraformMirror, provider),
				"../../../../registry.opentofu.org/"+provider))
		}
	}
	return engines, providers
}

// without returns the added providers that the image does not have in that version: its own have what modules need.
func without(added, own []file) []file {
	return slices.DeleteFunc(added, func(f file) bool {
		return slices.ContainsFunc(own, func(o file) bool { return o.path == f.path || o.path == path.Dir(f.path) })
	})
}

// registries are where OpenTofu and Terraform look up a provider without a host.
var registries = []string{"registry.opentofu.org", "registry.terraform.io"}

// addedProviders returns the files of a filesystem mirror for a platform, unpacked or as archives. Either engine finds
// them.
func addedProviders(folder string, platform v1.Platform) ([]file, error) {
	if folder == "" {
		return nil, nil
	}
	suffix := platform.OS + "_" + platform.Architecture
	mirror, files := os.DirFS(folder), map[string]file{}
	for _, pattern := range []string{
		"*/*/*/*/" + suffix + "/terraform-provider-*", "*/*/*/terraform-provider-*_" + suffix + ".zip",
	} {
		names, err := fs.Glob(mirror, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			files[name] = program(path.Join(share, "mirror", name), filepath.Join(folder, filepath.FromSlash(name)))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no provider for %s: fill it with 'tofu providers mirror -platform=%s %s'", folder,
			platform, suffix, folder)
	}
	for name := range maps.Clone(files) {
		host, rest, _ := strings.Cut(name, "/")
		for _, other := range registries {
			linked := other + "/" + rest
			if _, given := files[linked]; !given && slices.Contains(registries, host) {
				up := strings.Repeat("../", strings.Count(linked, "/"))
				files[linked] = link(path.Join(share, "mirror", linked), up+name)
			}
		}
	}
	return slices.Collect(maps.Values(files)), nil
}

// manifest lists the mirror's providers with their digests, in the format of sha256sum. The manager looks for it beside
// the mirror.
func manifest(providers []file) (file, error) {
	folder := path.Join(share, path.Dir(path.Clean(mirror)))
	var lines []string
	for _, one := range providers {
		name, ok := strings.CutPrefix(one.path, folder+"/")
		if !ok || one.mode&fs.ModeSymlink != 0 {
			continue
		}
		opened, _, err := one.open()
		if err != nil {
			return file{}, err
		}
		hash, _, err := v1.SHA256(opened)
		if err = errors.Join(err, opened.Close()); err != nil {
			return file{}, fmt.Errorf("reading the source of /%s: %w", one.path, err)
		}
		lines = append(lines, fmt.Sprintf("%s  %s\n", hash.Hex, name))
	}
	slices.Sort(lines)
	return text(folder+".sha256", strings.Join(lines, "")), nil
}

// environment returns this process's environment without variables that would change the binaries.
func environment(platform v1.Platform) []string {
	changing := []string{"GOFLAGS", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOOS", "GOARCH", "CGO_ENABLED", "TOFU",
		"KUBEBUILDER_ASSETS", "BIN_DIR"}
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(changing, name)
	})
	return append(kept, "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "CGO_ENABLED=0")
}
