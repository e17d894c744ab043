package main

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/test/manual"
)

func TestTheManualListsEveryFlag(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	manual.ListsEveryFlag(t, "../..", newFlags(&options{}, &zap.Options{}))
}
