package offline

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// providersDir is the engine's folder for the providers of an initialised module.
var providersDir = filepath.Join(".terraform", "providers")

// populate returns a workspace with the existing states, and with stub or real providers.
func (m *module) populate(inputs []Input) (*workspace, error) {
	w, err := m.newWorkspace()
	if err != nil {
		return nil, err
	}
	w.once, w.calls = true, len(inputs)
	if err := m.fill(w, inputs); err != nil {
		return nil, errors.Join(err, m.release(w))
	}
	return w, nil
}

func (m *module) fill(w *workspace, inputs []Input) error {
	merged, err := m.source.mergedState(inputs, m.planner.options.Binary.Version.String())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "terraform.tfstate"), merged, 0o600); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	if err := w.write(m); err != nil {
		return err
	}
	if inputs[0].Existing.Refresh {
		environment, err := w.withFiles(inputs[0].Existing)
		if err != nil {
			return fmt.Errorf("writing the files that providers read: %w", err)
		}
		return m.connect(w, environment)
	}
	return m.serveStates(w, inputs)
}

// withFiles writes the credential files into the workspace, and returns the environment with their paths.
func (w *workspace) withFiles(existing *Existing) (map[string]string, error) {
	environment := map[string]string{}
	maps.Copy(environment, existing.Environment)
	if len(existing.Files) == 0 {
		return environment, nil
	}
	dir := filepath.Join(w.dir, "secret-files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range existing.Files {
		environment[name] = filepath.Join(dir, name)
		if err := os.WriteFile(environment[name], []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return environment, nil
}

// connect lets the engine start the real providers with an environment.
func (m *module) connect(w *workspace, environment map[string]string) error {
	if len(m.installed) > 0 {
		if err := os.Symlink(filepath.Join(m.dir(), providersDir), filepath.Join(w.dir, providersDir)); err != nil {
			return fmt.Errorf("linking the providers: %w", err)
		}
	}
	// Providers may be links into the user's own cache.
	confined := m.planner.options.Sandbox.Reading(sandbox.Tree(filepath.Join(m.dir(), providersDir))...)
	engine, err := m.planner.engine(w.dir, environment, confined)
	if err != nil {
		return fmt.Errorf("making a folder to plan in: %w", err)
	}
	w.engine = engine
	return nil
}

// serveStates starts stub providers with the prior state for a workspace.
func (m *module) serveStates(w *workspace, inputs []Input) error {
	sources, err := dataSourcesOf(inputs[0].Existing.State)
	if err != nil {
		return err
	}
	w.reattach = tfexec.ReattachInfo{}
	for _, one := range m.installed {
		prior := &priorState{DataSources: sources, Configured: m.source.configuredOf,
			Call: m.callUnconfigured(filepath.Join(m.dir(), one.File))}
		started, err := m.serve(one, prior)
		if err != nil {
			return err
		}
		w.stubs = append(w.stubs, started)
		w.reattach[one.Address] = started.Reattach(one.Protocol)
	}
	return nil
}

// configuredOf merges what the module sets in its resources of a type.
func (s *source) configuredOf(kind string) *configured {
	all := &configured{}
	for key, one := range s.resources {
		if key[0] == kind {
			all.Add(one)
		}
	}
	return all
}

// missed reports whether a data source was read that no state has.
func (w *workspace) missed() bool {
	for _, one := range w.stubs {
		if one.Prior().Missed() {
			return true
		}
	}
	return false
}

// mark marks the resources whose change the provider did not plan.
func (w *workspace) mark(plans []*Plan) {
	for _, served := range w.stubs {
		for _, plan := range plans {
			for n := range plan.Resources {
				one := &plan.Resources[n]
				one.Unsure = one.Unsure || one.Action == engine.ActionUpdate && served.Prior().IsUnsure(one.Type)
			}
		}
	}
}
