package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// pushed is what the stand-in of hack/image prints.
const pushed = "registry.example/machine-iac-operator@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// TestTheREADMEInstalls runs the commands of the README's section with a real API server and operator. Stand-ins of go
// and kind take down how they are called: a test of hack/image pushes to a registry.
func TestTheREADMEInstalls(t *testing.T) {
	long.Test(t)
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Install\n")
	found := block.FindStringSubmatch(section)
	if found == nil || !strings.Contains(found[2], "make deploy IMAGE=registry.example/machine-iac-operator:dev") {
		t.Fatalf("the section does not begin with make deploy: %q", found)
	}
	place := newWorkplace(t)
	for name, test := range map[string]struct{ commands, calls, image string }{
		"by a registry": {found[2], "go run ./hack/image push registry.example/machine-iac-operator:dev\n", pushed},
		"into kind": {"make deploy KIND=demo VERSION=v1.2.3", "go run ./hack/image archive machine-iac-operator:v1.2.3 dist/image.tar\n" +
			"kind load image-archive dist/image.tar --name demo\n", "machine-iac-operator:v1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, withoutCRDs)
			c.callKind(t, "demo")
			place.starts(t, c)
			calls := c.deploy(t, test.commands)
			if !strings.HasSuffix(calls, test.calls) || !strings.Contains(calls, "go run ./hack/image build ") {
				t.Errorf("called:\n%swant a build, and\n%s", calls, test.calls)
			}
			made := &appsv1.Deployment{}
			if err := c.plane.Client.Get(t.Context(), operatorKey, made); err != nil {
				t.Fatal(err)
			}
			if got := made.Spec.Template.Spec.Containers[0].Image; got != test.image {
				t.Errorf("the image is %s, want %s", got, test.image)
			}
		})
	}
}

// callKind gives the cluster's context the name that kind does.
func (c *cluster) callKind(t *testing.T, name string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["kind-"+name] = config.Contexts[config.CurrentContext]
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// deploy runs commands in the repository, and returns how they called go and kind.
func (c *cluster) deploy(t *testing.T, commands string) string {
	t.Helper()
	programs := t.TempDir()
	log := filepath.Join(programs, "calls")
	for _, name := range []string{"go", "kind"} {
		script := fmt.Sprintf("#!/bin/sh\necho \"%s $*\" >>%s\n[ \"$3\" != push ] || echo %s\n", name, log, pushed)
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", commands)
	command.Dir = root
	command.Env = []string{"PATH=" + programs + ":" + bin + ":" + os.Getenv("PATH"), "KUBECONFIG=" + c.kubeconfig, "HOME=" + programs}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	called, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(called)
}
