package nodelink_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/controllers/nodelink"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestNodeLinkAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "NodeLink controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })

// startManager runs the controller until stop is called; the test's end calls it too.
func startManager() (stop func()) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, "")
	Expect(nodelink.SetupWithManager(context.Background(), mgr, nodelink.Options{})).To(Succeed())
	return suite.Run(mgr)
}
