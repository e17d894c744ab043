package pulumi

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/blang/semver"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// oldest is the first version whose events and flags this package is known to support.
var oldest = semver.MustParse("3.206.0")

// Name of the CLI.
const Name = "pulumi"

// Binary is a Pulumi CLI.
type Binary struct {
	Path    string
	Version semver.Version
}

// files returns the folder with the CLI, the language hosts and the programs of stacks, and the
// targets of the first two if they are links.
func (b Binary) files() []string {
	dir := filepath.Dir(b.Path)
	found := []string{dir}
	programs, _ := filepath.Glob(filepath.Join(dir, Name+"*")) // the pattern is valid
	for _, program := range programs {
		if target, err := filepath.EvalSymlinks(program); err == nil && filepath.Dir(target) != dir {
			found = append(found, target)
		}
	}
	return found
}

// Find checks the CLI at a path.
func Find(ctx context.Context, path string) (Binary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Binary{}, fmt.Errorf("finding pulumi: %w", err)
	}
	output, err := workdir.Version(ctx, path, "PULUMI_SKIP_UPDATE_CHECK=true")
	if err != nil {
		return Binary{}, err
	}
	version, err := semver.ParseTolerant(strings.TrimSpace(string(output)))
	if err != nil {
		return Binary{}, fmt.Errorf("getting the version of %s: got %.100q, not a version of pulumi", path, output)
	}
	if version.LT(oldest) {
		return Binary{}, fmt.Errorf("pulumi at %s has version %s; install %s or later", path, version, oldest)
	}
	return Binary{Path: path, Version: version}, nil
}
