package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Component is a process of the cluster, named like its binary.
type Component string

// The components of a cluster.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	KWOK              Component = "kwok"
)

// Components lists the components in start order; they stop in reverse.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, KWOK}
}

// ParseComponent returns the component called name, or an error that lists all names.
func ParseComponent(name string) (Component, error) {
	var names []string
	for _, component := range Components() {
		if string(component) == name {
			return component, nil
		}
		names = append(names, string(component))
	}
	return "", fmt.Errorf("parsing component %q: there is no such component; use one of %s", name,
		strings.Join(names, ", "))
}

// layout returns the paths of all files. Both folders are absolute, because the processes outlive their starter's
// working directory.
type layout struct {
	dir string
	bin string
}

func (l layout) state() string           { return filepath.Join(l.dir, "state.json") }
func (l layout) lock() string            { return filepath.Join(l.dir, "lock") }
func (l layout) adminKubeconfig() string { return filepath.Join(l.dir, "admin.kubeconfig") }
func (l layout) etcdData() string        { return filepath.Join(l.dir, "etcd") }
func (l layout) pki() string             { return filepath.Join(l.dir, "pki") }
func (l layout) logs() string            { return filepath.Join(l.dir, "logs") }
func (l layout) home() string            { return filepath.Join(l.dir, "home") }
func (l layout) config() string          { return filepath.Join(l.dir, "config") }
func (l layout) kwokStages() string      { return filepath.Join(l.config(), "kwok-stages") }
func (l layout) egress() string          { return filepath.Join(l.config(), "egress.yaml") }
func (l layout) services() string        { return filepath.Join(l.dir, "services.sock") }
func (l layout) auditPolicy() string     { return filepath.Join(l.config(), "audit-policy.yaml") }
func (l layout) auditLog() string        { return filepath.Join(l.logs(), "audit.log") }
func (l layout) cert(name string) string { return filepath.Join(l.pki(), name+".crt") }
func (l layout) key(name string) string  { return filepath.Join(l.pki(), name+".key") }
func (l layout) log(component Component) string {
	return filepath.Join(l.logs(), string(component)+".log")
}
func (l layout) binary(component Component) string { return filepath.Join(l.bin, string(component)) }
func (l layout) stageSources() string              { return filepath.Join(l.bin, "kwok-stages") }

func (l layout) previousLog(component Component) string {
	return filepath.Join(l.logs(), string(component)+".previous.log")
}

func (l layout) kubeconfig(component Component) string {
	return filepath.Join(l.config(), string(component)+".kubeconfig")
}

// makeFolders creates the data folder, readable by its owner only because it holds private keys.
func (l layout) makeFolders() error {
	for _, dir := range []string{l.dir, l.pki(), l.etcdData(), l.logs(), l.home(), l.config()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating the data folder: %w", err)
		}
	}
	return nil
}

// checkOwn rejects a folder with other content, which a purge would remove. A folder with a state file belongs to a
// cluster; one without may contain the leftovers of an interrupted start.
func (l layout) checkOwn() error {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into the data folder: %w", err)
	}
	own := map[string]bool{}
	for _, path := range []string{
		l.pki(), l.etcdData(), l.logs(), l.home(), l.config(), l.lock(), l.adminKubeconfig(),
	} {
		own[filepath.Base(path)] = true
	}
	var foreign []string
	for _, entry := range entries {
		if entry.Name() == filepath.Base(l.state()) {
			return nil
		}
		if !own[entry.Name()] {
			foreign = append(foreign, entry.Name())
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("using %s as the data folder: it holds no cluster but other files (%s); name an empty or a "+
			"new folder with --dir",
			l.dir, strings.Join(foreign[:min(3, len(foreign))], ", "))
	}
	return nil
}

// checkBinaries reports all missing binaries at once.
func (l layout) checkBinaries() error {
	var missing []string
	for _, component := range Components() {
		info, err := os.Stat(l.binary(component))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			missing = append(missing, string(component))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("finding binaries in %s: no executable %s; build them with 'make tools' or name another "+
			"folder with --bin",
			l.bin, strings.Join(missing, ", "))
	}
	return nil
}
