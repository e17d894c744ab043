package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// quickVersion is the version of the providerSpecs of the modules as rounds have them.
const quickVersion = "chaos.machine-iac.io/v1"

// quickName is what such a module is called.
func quickName(name string) string { return name + "-chaos" }

// quickModules copies the modules that rounds use, with infrastructure that settles as soon as the longest fault is over: with the time that a
// real cloud may need, most of a round would be waiting.
func (w *world) quickModules() error {
	settle := int((w.options.Limits.Away + 2*time.Second) / time.Second)
	for _, source := range []string{"modules/kubemark", "modules/openstack", "stacks/kubemark"} {
		name := quickName(filepath.Base(source))
		folder := filepath.Join(w.dir, "quick", filepath.Dir(source))
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(w.lab.Path(source))); err != nil {
			return fmt.Errorf("copying %s: %w", source, err)
		}
		if err := quicken(filepath.Join(folder, name, "module.yaml"), name, settle); err != nil {
			return err
		}
		if _, err := module.LoadAll(os.DirFS(folder)); err != nil {
			return fmt.Errorf("loading the copy of %s: %w", source, err)
		}
	}
	w.flags = append(w.flags, "--module-dir="+filepath.Join(w.dir, "quick", "modules"), "--module-dir="+filepath.Join(w.dir, "quick", "stacks"))
	return nil
}

// quicken renames a module, and shortens the time that its infrastructure takes to settle.
func quicken(path, name string, settle int) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading a module: %w", err)
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(content, &fields); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	metadata, _ := fields["metadata"].(map[string]any)
	spec, _ := fields["spec"].(map[string]any)
	lookup, _ := spec["lookup"].(map[string]any)
	if metadata == nil || lookup == nil {
		return errors.New(path + " has no name or no lookup")
	}
	metadata["name"], lookup["settleSeconds"] = name, settle
	served, _ := spec["providerSpecs"].([]any)
	for _, one := range served {
		if kind, ok := one.(map[string]any); ok {
			kind["apiVersions"] = []any{quickVersion}
		}
	}
	changed, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.WriteFile(path, changed, 0o600)
}
