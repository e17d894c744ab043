package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/modulelist"
)

func TestModulesOfTheManager(t *testing.T) {
	w := newSharedWorld(t)
	if said := w.ask(t, "modules"); said.code == 0 || !strings.Contains(said.err, "check that a manager leads") {
		t.Errorf("without a list: exit code %d: %s%s", said.code, said.out, said.err)
	}
	for _, list := range [][]modulelist.Provider{nil, {
		{Module: "aws", Engine: "Terraform", Provider: "hashicorp/aws", Version: "6.25.0", Status: modulelist.Missing},
		{Module: "own", Engine: "Terraform"},
	}} { // the second replaces the first
		if err := modulelist.Write(t.Context(), w.Client, w.namespace, list); err != nil {
			t.Fatal(err)
		}
	}
	said := w.ask(t, "modules")
	if diff := cmp.Diff("MODULE   ENGINE      PROVIDER        VERSION   STATUS\naws      Terraform   hashicorp/aws   6.25.0    Missing\nown      Terraform   -               -         -\n", said.out); said.code != 0 || diff != "" {
		t.Errorf("exit code %d: %s(-want +got):\n%s", said.code, said.err, diff)
	}
	if !strings.Contains(said.err, "docs/modules.md#get-the-provider") {
		t.Errorf("nothing says what to do: %s", said.err)
	}
}
