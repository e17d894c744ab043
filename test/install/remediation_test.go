package install_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// TestTheManagerMayRemediateByMetal3OnceItsClusterRoleIsThere uses a real controller manager for the aggregation.
func TestTheManagerMayRemediateByMetal3OnceItsClusterRoleIsThere(t *testing.T) {
	long.Test(t)
	c := start(t)
	c.kubectl(t, "create", "-f", filepath.Join(root, "install", "kubernetes", "namespace.yaml"))
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "controllers"))
	c.aggregate(t)
	create := authorizationv1.ResourceAttributes{
		Verb: "create", Group: "infrastructure.cluster.x-k8s.io", Resource: "metal3remediations",
	}
	if c.may(t, create) {
		t.Fatal("the manager may create Metal3Remediations before anybody has granted it")
	}
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "metal3"))
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			return c.may(t, create), nil
		})
	if err != nil {
		t.Fatalf("the ClusterRole is not aggregated: %v", err)
	}
	template := authorizationv1.ResourceAttributes{
		Verb: "get", Group: create.Group, Resource: "metal3remediationtemplates",
	}
	for _, asked := range []authorizationv1.ResourceAttributes{
		template,
		{Verb: "list", Group: create.Group, Resource: create.Resource},
		{Verb: "delete", Group: create.Group, Resource: create.Resource},
	} {
		if !c.may(t, asked) {
			t.Errorf("the manager may not %s %s", asked.Verb, asked.Resource)
		}
	}
	template.Verb = "delete"
	if c.may(t, template) {
		t.Error("the manager may delete templates, which it has no need to")
	}
}

// may reports whether the manager has a right in its namespace.
func (c *cluster) may(t *testing.T, asked authorizationv1.ResourceAttributes) bool {
	t.Helper()
	asked.Namespace = namespace
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":machine-api-controllers", ResourceAttributes: &asked,
	}}
	if err := c.plane.Client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// aggregate runs the controller that aggregates ClusterRoles until the test ends.
func (c *cluster) aggregate(t *testing.T) {
	t.Helper()
	command := exec.Command(filepath.Join(root, "bin", "kube-controller-manager"),
		"--kubeconfig", c.kubeconfig, "--controllers=clusterrole-aggregation-controller",
		"--leader-elect=false", "--secure-port=0")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Log(out.String())
		}
	})
}
