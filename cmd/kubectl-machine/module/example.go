package module

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

const exampleFile = "examples/machineset.yaml"

// readExample checks the module's example like admission, and keeps what is to be planned.
func (m *checkedModule) readExample(loaded *module.Module) error {
	content, err := fs.ReadFile(m.files, exampleFile)
	if err != nil {
		return err
	}
	catalog, err := module.NewCatalog(loaded)
	if err != nil {
		return err
	}
	requests, _, err := preview.Read([]preview.File{{Name: exampleFile, Content: content}},
		preview.Cluster{Namespace: "openshift-machine-api"}, catalog)
	var problems preview.Problems
	switch {
	case errors.As(err, &problems):
		for _, one := range problems {
			what := one.Field
			if what != "" {
				what += ":"
			}
			m.add(contract.Breach{File: exampleFile, Line: one.Line, What: what, Problem: one.Problem, Fix: one.Fix})
		}
		return nil
	case err != nil:
		return err
	case len(requests) == 0:
		m.add(contract.Breach{File: exampleFile, Problem: "has no MachineSet", Fix: "add one"})
	}
	m.example = requests
	return nil
}

// planExample plans the example as `kubectl machine plan` does.
func (w *work) planExample(ctx context.Context) (err error) {
	planner, err := offline.New(offline.Options{
		Binary: w.check.binary, CacheDir: filepath.Join(filepath.Dir(w.dir), "cache"), ProviderMirror: w.check.mirror,
		InitEnvironment: w.check.own, Sandbox: w.check.sandbox,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, planner.Close()) }()
	_, failed := preview.Plan(ctx, w.module.example, planner, "")
	if failed == nil || ctx.Err() != nil {
		return failed
	}
	w.module.add(contract.Breach{File: exampleFile, Problem: "cannot be planned: " + oneLine(failed.Error())})
	return nil
}
