//go:build life

package life

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/test/calls"
)

// platform is a module or a stack, and what its Machines are made in.
type platform struct {
	// name is its column in docs/platforms.md, and what PLATFORM selects.
	name string
	// module is the folder of the module or stack; its example is the MachineSet.
	module string
	// provider is the provider's name in the registry, as the program terraform-provider-NAME is called.
	provider string
	// infrastructure says what it runs against.
	infrastructure string
	// lacks says, by step, why a step is skipped.
	lacks map[string]string
	// open starts the infrastructure. It ends with the test.
	open func(w *world) *site
	// absent says why the platform cannot run here, if it cannot.
	absent string
	// above is what its Machines take in place of the goal for calls; nil keeps the goal.
	above *exception
}

// site is a platform's infrastructure as it runs, and what Machines on it need.
type site struct {
	// status is what the cluster's Infrastructure says; nil for none. authorities and proxy are how the infrastructure is reached.
	status      *configv1.InfrastructureStatus
	spec        configv1.InfrastructureSpec
	authorities string
	proxy       string
	// flags are the manager's, beside those of every platform.
	flags []string
	// credentials is the Secret that Machines name, nil for none. rotate replaces what signs in: the former does not any more.
	credentials *corev1.Secret
	rotate      func(ctx context.Context) (map[string][]byte, error)
	// set has three replicas.
	set *machinev1beta1.MachineSet
	// nodes says that an instance is its own Node. Otherwise the test makes Nodes, as kubelets would.
	nodes bool

	// change can be made in place, refused cannot be made, and invalid makes a providerSpec that is not admitted.
	change, refused, invalid func(spec map[string]any)
	// renew removes the image or template that the set's Machines were made from, and has the providerSpec name another one.
	renew func(ctx context.Context) (func(spec map[string]any), error)

	// look returns the IDs of the instances of a name, by the infrastructure's own means.
	look func(ctx context.Context, name string) ([]string, error)
	// userData returns what an instance was given.
	userData func(ctx context.Context, name string) (string, error)
	// remove deletes an instance behind the operator's back, and all that belongs to it.
	remove func(ctx context.Context, name string) error
	// copy makes an instance by other means, of the cluster, in the likeness of a Machine's, and returns its provider ID.
	copy func(ctx context.Context, from, name string) (string, error)
	// left returns what there is of these names, instances, disks and interfaces alike.
	left func(ctx context.Context, names []string) ([]string, error)
	// lost notes that states were removed by force, so that what is there now is nobody's; nil where remove takes all that belongs to an instance.
	lost func()
	// deny has the infrastructure refuse creates, deletions, or nothing any more, until it is called again; refusal is in its words.
	deny    func(ctx context.Context, what denial) error
	refusal string
	// replaces says that an interrupted create may leave an instance that was never started, which is replaced.
	replaces bool
	// slow has creates take long enough for a kill; nil where they do anyway.
	slow func(on bool)
	// calls returns how often what was requested of the infrastructure, named as test/calls does, without what this suite asks.
	calls func(ctx context.Context) (map[string]int, error)
}

// made returns a site's calls by the log of a simulation.
func made(log *calls.Log) func(context.Context) (map[string]int, error) {
	return func(context.Context) (map[string]int, error) { return log.Made(), nil }
}

// denial is what an infrastructure refuses.
type denial int

const (
	denyNothing denial = iota
	denyCreates
	denyDeletions
)

var (
	requiredSource  = regexp.MustCompile(`source\s*=\s*"([^"]+/[^"]+)"`)
	requiredVersion = regexp.MustCompile(`version\s*=\s*"([0-9.]+)"`)
)

// requires returns the provider that the module requires, as NAMESPACE/NAME, and its version.
func (p platform) requires(root string) (source, version string, err error) {
	folder := p.module
	if strings.HasPrefix(folder, "stacks/") {
		folder = "modules/" + filepath.Base(folder)
	}
	content, err := os.ReadFile(filepath.Join(root, folder, "terraform.tf"))
	if err != nil {
		return "", "", err
	}
	sources, versions := requiredSource.FindSubmatch(content), requiredVersion.FindSubmatch(content)
	if sources == nil || versions == nil {
		return "", "", fmt.Errorf("%s/terraform.tf requires no version of a provider", folder)
	}
	return string(sources[1]), string(versions[1]), nil
}

// program returns the program of the provider: "" where bin/mirror has it. The error says how to get one.
func (p platform) program(root string) (string, error) {
	_, version, err := p.requires(root)
	if err != nil {
		return "", err
	}
	if found, _ := filepath.Glob(filepath.Join(root, "bin", "mirror", "*", "*", p.provider, version, "*", "terraform-provider-*")); len(found) > 0 {
		return "", nil
	}
	name := "terraform-provider-" + p.provider
	if folder := os.Getenv("PROVIDERS"); folder != "" {
		for _, pattern := range []string{name + "_v*", name} {
			if found, _ := filepath.Glob(filepath.Join(folder, pattern)); len(found) > 0 {
				return found[0], nil
			}
		}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s of version %s: put it into a folder and name that in PROVIDERS; test/life/README.md says how it is built", name, version)
	}
	return program, nil
}

// built says which build of the provider this is.
func (p platform) built(root, program string) string {
	_, version, _ := p.requires(root)
	text := p.provider + " " + version
	if program == "" {
		return text
	}
	if _, rest, ok := strings.Cut(filepath.Base(program), "_v"); ok { // as in releases: terraform-provider-aws_v6.25.0_x5
		if own, _, _ := strings.Cut(rest, "_"); own != version {
			return p.provider + " " + own + " in place of " + version
		}
		return text
	}
	if info, err := buildinfo.ReadFile(program); err == nil && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return text + " (" + info.Main.Version + ")"
	}
	return text + " (built from its source)"
}
