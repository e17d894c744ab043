package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// shared is what tests of this package have in common, because it is expensive: it is made for the first that asks.
var shared struct {
	plane  *controlplane.ControlPlane
	folder string
}

// sharedPlane returns an API server for tests that keep to a namespace of their own.
var sharedPlane = sync.OnceValues(func() (*controlplane.ControlPlane, error) {
	started, err := controlplane.Start(controlplane.Default)
	shared.plane = started
	return started, err
})

// builtPlugin returns the path of the plugin, built as users have it.
var builtPlugin = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "kubectl-machine-")
	if err != nil {
		return "", err
	}
	shared.folder = folder
	plugin := filepath.Join(folder, "kubectl-machine")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", plugin, ".") // as make build does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return plugin, build.Run()
})

// closeShared ends what tests have shared.
func closeShared() {
	if shared.plane != nil {
		if err := shared.plane.Stop(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
		}
	}
	if err := os.RemoveAll(shared.folder); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
	}
}

// placePlugin puts the plugin into a folder. It is a file there and no symbolic link: it looks for engines beside itself.
func placePlugin(t *testing.T, folder string) string {
	t.Helper()
	plugin, err := builtPlugin()
	if err != nil {
		t.Fatal(err)
	}
	placed := filepath.Join(folder, filepath.Base(plugin))
	if err := os.Link(plugin, placed); err != nil {
		t.Fatal(err)
	}
	return placed
}
