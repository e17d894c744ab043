package config

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestReaderAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reader of the cluster's configuration")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })
