package pulumikeys_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestKeysAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Keys of checkpoints")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	plane = suite.Start(controlplane.Default)
	for range 3 {
		key, err := pulumi.NewKey(ctx)
		Expect(err).NotTo(HaveOccurred())
		shelf.keys = append(shelf.keys, key)
	}
})
