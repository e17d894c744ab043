package module

import (
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/moduletest"
)

type change = moduletest.Change

func changed(t *testing.T, changes ...change) map[string]string {
	t.Helper()
	return moduletest.Edit(t, moduletest.Module(), changes...)
}

func changedStack(t *testing.T, changes ...change) map[string]string {
	t.Helper()
	return moduletest.Edit(t, moduletest.Stack(), changes...)
}

func mustLoad(t *testing.T, changes ...change) *Module {
	t.Helper()
	return mustLoadFiles(t, changed(t, changes...))
}

func mustLoadStack(t *testing.T, changes ...change) *Module {
	t.Helper()
	return mustLoadFiles(t, changedStack(t, changes...))
}

func mustLoadFiles(t *testing.T, files map[string]string) *Module {
	t.Helper()
	loaded, err := Load(moduletest.FS(files))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
