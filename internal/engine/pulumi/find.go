package pulumi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/blang/semver"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// oldest is the first version whose events and flags this package is known to support.
var oldest = semver.MustParse("3.206.0")

// findTimeout limits how long the CLI may take to print its version.
const findTimeout = 30 * time.Second

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
	home, err := os.MkdirTemp("", "pulumi")
	if err != nil {
		return Binary{}, fmt.Errorf("finding pulumi: %w", err)
	}
	defer os.RemoveAll(home) //nolint:errcheck // an empty folder among temporary files
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, "version")
	command.Dir = home
	command.Env = []string{"HOME=" + home, "PULUMI_HOME=" + home, "PULUMI_SKIP_UPDATE_CHECK=true"}
	command.WaitDelay = time.Second
	runtime.LockOSThread() // the child dies with the thread that starts it
	defer runtime.UnlockOSThread()
	command.SysProcAttr = workdir.ChildAttributes()
	output, err := command.Output()
	if err != nil {
		return Binary{}, fmt.Errorf("getting the version of %s: %w", path, err)
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
