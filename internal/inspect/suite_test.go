package inspect_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestInspectAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Inspect")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.CustomNoUpgrade) })

// clusterOf returns what a user sees of a namespace; an administrator when it is empty.
func clusterOf(user, namespace string) *inspect.Cluster {
	GinkgoHelper()
	config := rest.CopyConfig(plane.Config)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	cluster, err := inspect.New(config, namespace, state.Options{})
	Expect(err).NotTo(HaveOccurred())
	return cluster
}

// userWho makes a user who may do so much in a namespace, and nothing else.
func userWho(ctx SpecContext, namespace string, rules ...rbacv1.PolicyRule) string {
	GinkgoHelper()
	user := "user-of-" + namespace
	Expect(plane.Grant(ctx, namespace, user, rules...)).To(Succeed())
	return user
}

func mayRead(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
}
