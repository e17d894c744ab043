package tofu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hc-install/fs"
	"github.com/hashicorp/hc-install/product"
	"github.com/hashicorp/hc-install/releases"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// The names of the engines.
const (
	OpenTofu  = "tofu"
	Terraform = "terraform"
)

// DefaultConstraint is the default version constraint. Older versions lack `init -json`, and
// validation rules that refer to other variables, which modules use.
const DefaultConstraint = ">= 1.9.0"

const (
	probeTimeout   = 30 * time.Second
	installTimeout = 5 * time.Minute
)

// Binary is an engine's CLI with the name and version that it reports.
type Binary struct {
	// Path is absolute.
	Path string
	// Name is OpenTofu or Terraform.
	Name    string
	Version *version.Version
}

// String returns a description for people, for example "tofu 1.12.6 (/usr/bin/tofu)".
func (b Binary) String() string { return fmt.Sprintf("%s %s (%s)", b.Name, b.Version, b.Path) }

// FindOptions describe the wanted CLI.
type FindOptions struct {
	// Path is the file itself. Find then neither searches PATH nor installs anything.
	Path string
	// Name is OpenTofu, Terraform, or empty for the first of them that is found.
	Name string
	// Constraint is a version constraint such as "~> 1.12". Defaults to DefaultConstraint.
	// Pre-releases count as the release.
	Constraint string
	// Install downloads a release of Terraform into InstallDir if PATH has no suitable CLI and Name is
	// not OpenTofu, whose releases are not served this way.
	Install    bool
	InstallDir string
	// InstallURL is a mirror of the releases site. Defaults to the public one.
	InstallURL string
}

// Find returns a CLI that matches the options. Errors say what was searched where, what was found
// instead, and how to fix it.
func Find(ctx context.Context, o FindOptions) (Binary, error) {
	if o.Constraint == "" {
		o.Constraint = DefaultConstraint
	}
	constraints, err := version.NewConstraint(o.Constraint)
	if err != nil {
		return Binary{}, fmt.Errorf("invalid engine version constraint %q: %w; use one such as \"~> 1.12\"",
			o.Constraint, err)
	}
	names, err := engineNames(o.Name)
	if err != nil {
		return Binary{}, err
	}
	if o.Path != "" {
		return findAt(ctx, o, constraints)
	}
	search := search{constraints: constraints}
	if o.InstallDir != "" {
		search.extra = []string{o.InstallDir}
	}
	for _, name := range names {
		if binary, err := search.onPath(ctx, name); err == nil {
			return binary, nil
		}
	}
	if o.Install && o.Name != OpenTofu {
		return install(ctx, o, constraints)
	}
	return Binary{}, fmt.Errorf("finding %s %s on PATH (%s): %s; install one, or set its path",
		strings.Join(names, " or "), o.Constraint, os.Getenv("PATH"), search.found())
}

func engineNames(name string) ([]string, error) {
	switch name {
	case "":
		return []string{OpenTofu, Terraform}, nil
	case OpenTofu, Terraform:
		return []string{name}, nil
	default:
		return nil, fmt.Errorf("unknown engine %q: must be %q or %q", name, OpenTofu, Terraform)
	}
}

func findAt(ctx context.Context, o FindOptions, constraints version.Constraints) (Binary, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return Binary{}, fmt.Errorf("finding the engine at %s: %w", o.Path, err)
	}
	if _, err := (&fs.AnyVersion{ExactBinPath: path}).Find(ctx); err != nil {
		return Binary{}, fmt.Errorf("finding the engine at %s: %w; set the path of an executable file", path, err)
	}
	binary, err := probe(ctx, path)
	if err != nil {
		return Binary{}, err
	}
	if o.Name != "" && binary.Name != o.Name {
		return Binary{},
			fmt.Errorf("finding the engine at %s: it is %s, but %s is required; set another path or the other engine",
				path, binary.Name, o.Name)
	}
	if !constraints.Check(binary.Version.Core()) {
		return Binary{},
			fmt.Errorf("finding the engine at %s: it is version %s, but %s is required; install a matching version", path,
				binary.Version, constraints)
	}
	return binary, nil
}

// search searches PATH and remembers unsuitable binaries.
type search struct {
	constraints version.Constraints
	extra       []string
	unfit       []string
}

func (s *search) onPath(ctx context.Context, name string) (Binary, error) {
	var last Binary
	find := &fs.Version{
		Product: product.Product{
			Name:       name,
			BinaryName: func() string { return name },
			GetVersion: func(ctx context.Context, path string) (*version.Version, error) {
				binary, err := probe(ctx, path)
				if err == nil && binary.Name != name {
					err = fmt.Errorf("%s is %s", path, binary.Name)
				}
				if err != nil {
					s.unfit = append(s.unfit, err.Error())
					return nil, err
				}
				last = binary
				s.unfit = append(s.unfit, fmt.Sprintf("%s is version %s", path, binary.Version))
				return binary.Version.Core(), nil
			},
		},
		Constraints: s.constraints,
		ExtraPaths:  s.extra,
		Timeout:     probeTimeout,
	}
	if err := find.Validate(); err != nil {
		return Binary{}, err
	}
	path, err := find.Find(ctx)
	if err != nil {
		return Binary{}, err
	}
	last.Path = path
	return last, nil
}

func (s *search) found() string {
	if len(s.unfit) == 0 {
		return "not found"
	}
	return "no suitable version: " + strings.Join(s.unfit, ", ")
}

func install(ctx context.Context, o FindOptions, constraints version.Constraints) (Binary, error) {
	if o.InstallDir == "" {
		return Binary{}, errors.New("installing terraform: no folder to install it into")
	}
	if err := os.MkdirAll(o.InstallDir, 0o700); err != nil {
		return Binary{}, fmt.Errorf("installing terraform: %w", err)
	}
	source := &releases.LatestVersion{
		Product:     product.Terraform,
		Constraints: constraints,
		InstallDir:  o.InstallDir,
		ApiBaseURL:  o.InstallURL,
		Timeout:     installTimeout,
	}
	if err := source.Validate(); err != nil {
		return Binary{}, fmt.Errorf("installing terraform: %w", err)
	}
	path, err := source.Install(ctx)
	if err != nil {
		return Binary{},
			fmt.Errorf("installing terraform %s into %s: %w; without access to the releases, put a binary on PATH", constraints,
				o.InstallDir, err)
	}
	return probe(ctx, path)
}

// Both engines start the line with their name. A warning may precede it.
var versionLine = regexp.MustCompile(`(?m)^(OpenTofu|Terraform) v(\S+)`)

// probe runs the CLI to get its name and version.
func probe(ctx context.Context, path string) (Binary, error) {
	output, err := workdir.Version(ctx, path, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	if err != nil {
		return Binary{}, err
	}
	found := versionLine.FindSubmatch(output)
	if found == nil {
		return Binary{}, fmt.Errorf("getting the version of %s: got %.100q, not a version of OpenTofu or Terraform",
			path, output)
	}
	number, err := version.NewVersion(string(found[2]))
	if err != nil {
		return Binary{}, fmt.Errorf("getting the version of %s: %w", path, err)
	}
	name := OpenTofu
	if string(found[1]) == "Terraform" {
		name = Terraform
	}
	return Binary{Path: path, Name: name, Version: number}, nil
}
