package workdir

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// versionTimeout limits how long a CLI may take to print its version.
const versionTimeout = 30 * time.Second

// Version returns what a CLI prints about its version. It runs with an environment and home of its
// own: a missing or broken configuration of the user causes warnings or errors.
func Version(ctx context.Context, program string, environment ...string) ([]byte, error) {
	home, err := os.MkdirTemp("", "engine-probe-")
	if err != nil {
		return nil, fmt.Errorf("getting the version of %s: %w", program, err)
	}
	defer os.RemoveAll(home) //nolint:errcheck // an empty folder in the temporary folder
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, "version")
	command.Dir = home
	command.Env = append([]string{"HOME=" + home}, environment...)
	command.WaitDelay = time.Second
	runtime.LockOSThread() // the child dies with the thread that starts it
	defer runtime.UnlockOSThread()
	command.SysProcAttr = ChildAttributes()
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("getting the version of %s: %w", program, err)
	}
	return output, nil
}
