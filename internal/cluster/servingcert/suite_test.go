package servingcert

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestKeeperAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Keeper of the webhooks' certificate")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })
