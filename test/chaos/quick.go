package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// quickVersion is the providerSpec version of the rounds' copies of modules.
const quickVersion = "quick.machine-iac.io/v1"

// quickName returns the name of a module's copy.
func quickName(name string) string { return name + "-quick" }

// Quicken changes a providerSpec to use the copy from [QuickCopy].
func Quicken(spec map[string]any) {
	if stack, isStack := spec["stack"].(string); isStack {
		spec["stack"] = quickName(stack)
	} else {
		spec["apiVersion"] = quickVersion
	}
}

// quickModules copies the rounds' modules with a settlement period just above the longest fault. A real cloud's would
// dominate a round.
func (w *world) quickModules() error {
	settle := int((w.options.Limits.Away + 2*time.Second) / time.Second)
	made := filepath.Join(w.dir, "quick")
	for _, source := range quickSources {
		if err := QuickCopy(filepath.Join(w.root, source),
			filepath.Join(made, filepath.Dir(source)), settle); err != nil {
			return err
		}
	}
	w.flags = append(w.flags, "--module-dir="+filepath.Join(made, "modules"),
		"--module-dir="+filepath.Join(made, "stacks"))
	return nil
}

var quickSources = []string{"modules/kubemark", "modules/openstack", "stacks/kubemark"}

// QuickCopy copies a module or stack to a folder of modules, with a settlement period of seconds.
func QuickCopy(source, folder string, settle int) error {
	name := quickName(filepath.Base(source))
	copied := filepath.Join(folder, name)
	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		return fmt.Errorf("copying %s: %w", source, err)
	}
	if err := rewrite(filepath.Join(copied, "module.yaml"), name, settle); err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(copied, "*", "Pulumi.yaml"))
	if err != nil {
		return err
	}
	for _, program := range append(programs, filepath.Join(copied, "Pulumi.yaml")) {
		content, err := os.ReadFile(program)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not a stack
		}
		if err != nil {
			return fmt.Errorf("reading a program: %w", err)
		}
		named := bytes.Replace(content, []byte("name: "+filepath.Base(source)+"\n"), []byte("name: "+name+"\n"), 1)
		if err := os.WriteFile(program, named, 0o600); err != nil {
			return fmt.Errorf("writing a program: %w", err)
		}
	}
	if _, err := load.Modules(os.DirFS(folder)); err != nil {
		return fmt.Errorf("loading the copy of %s: %w", source, err)
	}
	return nil
}

// rewrite renames a module, and shortens its settlement period.
func rewrite(path, name string, settle int) error {
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
	delete(spec, "platform") // only one module, the original, may serve providerSpecs without a kind on a platform
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
