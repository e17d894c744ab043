// Package lab installs the operator on a development cluster as an administrator would: it applies the unchanged
// install tree and the kubemark module's credentials, and runs the manager as a process that has only its service
// account's token. The demo, the end-to-end tests and the benchmarks use it.
package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

const (
	// Namespace is the namespace of the operator and of Machines.
	Namespace      = "openshift-machine-api"
	serviceAccount = "machine-api-controllers"
	deployment     = "machine-api-controllers"
	credentials    = "modules/kubemark/examples/credentials.yaml"
	// exampleServer is the address in it, which an administrator replaces.
	exampleServer = "https://kubernetes.default.svc"

	pollInterval = 200 * time.Millisecond
)

// Options configure a lab.
type Options struct {
	// Root is the repository, by default the working directory.
	Root string
	// Dir is the cluster's data folder, by default .dev in Root.
	Dir string
	// Progress receives a line per step, unless nil.
	Progress io.Writer
	// Operator installs the controllers with machine-api-operator, which keeps running. Otherwise Open applies
	// install/controllers like `kubectl apply -k`.
	Operator bool
	// Release is the operator's binary and version.
	Release OperatorInstance
	// NodeLease is the duration of Nodes' leases. See [cluster.Options].
	NodeLease time.Duration
	// Audit logs the requests of the operator and the manager to the cluster's audit log.
	Audit bool
}

// Lab is a development cluster with the operator installed.
type Lab struct {
	// Cluster is nil if the lab does not run the cluster.
	Cluster *cluster.Cluster
	// Operator is the running machine-api-operator, or nil.
	Operator   *Operator
	root       string
	dir        string
	kubeconfig string
	out        io.Writer
	// webhookPort is the port of the one manager that serves webhooks.
	webhookPort string
	unroute     func() error
}

// Open starts the cluster and installs the operator. It is idempotent for a folder.
func Open(ctx context.Context, o Options) (*Lab, error) {
	l, err := newLab(o, ".dev")
	if err != nil {
		return nil, err
	}
	settings := cluster.Options{Dir: l.dir, Bin: l.Path("bin"), NodeLease: o.NodeLease}
	if o.Audit {
		settings.Audit = []string{UserOf(operatorAccount), UserOf(serviceAccount)}
	}
	if l.Cluster, err = cluster.New(settings); err != nil {
		return nil, err
	}
	l.kubeconfig = l.Cluster.AdminKubeconfig()
	if err := l.Cluster.Up(ctx, l.out); err != nil {
		return nil, err
	}
	// Webhooks are called through their Service, as in production.
	if l.unroute, err = l.Cluster.RouteServices(l.WebhookAddress()); err != nil {
		return nil, err
	}
	if err := l.install(ctx, o); err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// Attach returns a lab for the current context of a kubeconfig. It installs nothing, and uses only the options Dir,
// Root and Progress.
func Attach(o Options, kubeconfig string) (*Lab, error) {
	l, err := newLab(o, ".dev-current")
	if err != nil {
		return nil, err
	}
	l.kubeconfig = kubeconfig
	if err := os.MkdirAll(filepath.Join(l.dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("making the data folder: %w", err)
	}
	return l, nil
}

func newLab(o Options, dir string) (*Lab, error) {
	if o.Root == "" {
		o.Root = "."
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, fmt.Errorf("finding the repository: %w", err)
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(root, dir)
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	l := &Lab{root: root, dir: o.Dir, out: o.Progress, unroute: func() error { return nil }}
	l.webhookPort, err = FreePort()
	return l, err
}

// UserOf returns the user name of a ServiceAccount in the namespace.
func UserOf(account string) string { return "system:serviceaccount:" + Namespace + ":" + account }

// Dir returns the data folder.
func (l *Lab) Dir() string { return l.dir }

// Path returns a path in the repository.
func (l *Lab) Path(parts ...string) string {
	return filepath.Join(append([]string{l.root}, parts...)...)
}

func (l *Lab) install(ctx context.Context, o Options) error {
	err := l.createNamespace(ctx)
	switch {
	case err != nil:
	case o.Operator:
		err = l.startOperator(ctx, o.Release)
	default:
		err = l.applyTrees(ctx)
	}
	if err != nil {
		return err
	}
	return l.ApplyCredentials(ctx, l.Cluster.Server())
}

func (l *Lab) applyTrees(ctx context.Context) error {
	fmt.Fprintln(l.out, "applying install/kubernetes/crds and install/controllers")
	for _, tree := range []string{"kubernetes/crds", "controllers"} {
		if err := l.ApplyTree(ctx, l.Path("install", tree)); err != nil {
			return err
		}
	}
	// The manager runs as a process. Its Pods would run on the first simulated Node, and be drained from it.
	if _, err := l.Kubectl(ctx, "scale", "deployment", deployment, "--replicas=0"); err != nil {
		return err
	}
	return l.established(ctx)
}

// ApplyTree applies a kustomize tree and takes over fields that others own.
func (l *Lab) ApplyTree(ctx context.Context, folder string) error {
	_, err := l.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "-k", folder)
	return err
}

func (l *Lab) established(ctx context.Context) error {
	_, err := l.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	return err
}

// ApplyCredentials creates the kubemark module's account, whose credentials name the API server's URL, and waits for
// its token.
func (l *Lab) ApplyCredentials(ctx context.Context, server string) error {
	fmt.Fprintln(l.out, "applying", credentials)
	manifest, err := os.ReadFile(l.Path(credentials))
	if err != nil {
		return fmt.Errorf("reading the credentials' manifest: %w", err)
	}
	manifest = bytes.ReplaceAll(manifest, []byte(exampleServer), []byte(server))
	if _, err := l.kubectl(ctx, bytes.NewReader(manifest), "apply", "-f", "-"); err != nil {
		return err
	}
	return l.CredentialsFilled(ctx)
}

// CredentialsFilled waits for the token of the kubemark module's credentials.
func (l *Lab) CredentialsFilled(ctx context.Context) error {
	return l.Until(ctx, time.Minute, "the token controller fills the credentials in",
		func(ctx context.Context) (bool, error) {
			token, err := l.Kubectl(ctx, "get", "secret", "kubemark-credentials", "-o", "jsonpath={.data.token}")
			return token != "", err
		})
}

// createNamespace creates the namespace if it is missing.
func (l *Lab) createNamespace(ctx context.Context) error {
	found, err := l.kubectl(ctx, nil, "get", "namespace", Namespace, "--ignore-not-found", "--output=name")
	if err != nil || found != "" {
		return err
	}
	_, err = l.kubectl(ctx, nil, "create", "-f", l.Path("install", "kubernetes", "namespace.yaml"))
	return err
}

// Run runs kubectl as the administrator with stdin input, and returns its output.
func (l *Lab) Run(ctx context.Context, input string, arguments ...string) (string, error) {
	return l.kubectl(ctx, strings.NewReader(input), arguments...)
}

// Kubectl runs kubectl as the administrator in the operator's namespace, and returns its output.
func (l *Lab) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	return l.kubectl(ctx, nil, append([]string{"--namespace", Namespace}, arguments...)...)
}

// Apply applies a manifest.
func (l *Lab) Apply(ctx context.Context, manifest string) error {
	_, err := l.kubectl(ctx, strings.NewReader(manifest), "apply", "-f", "-")
	return err
}

func (l *Lab) kubectl(ctx context.Context, input io.Reader, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, l.Path("bin", "kubectl"),
		append([]string{"--kubeconfig", l.kubeconfig}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, &out, &problems
	command.SysProcAttr = workdir.ChildAttributes()
	runtime.LockOSThread() // see Spawn
	defer runtime.UnlockOSThread()
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err,
			strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// Until polls until done returns true. When the limit expires, it reports the last error of done.
func (l *Lab) Until(ctx context.Context, limit time.Duration, what string,
	done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		ok, err := done(ctx)
		if err == nil && ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx)), last)
		case <-time.After(pollInterval):
		}
	}
}

// Show prints what kubectl gets of some kinds.
func (l *Lab) Show(ctx context.Context, kinds ...string) error {
	for _, what := range kinds {
		out, err := l.Kubectl(ctx, "get", what)
		if err != nil {
			return err
		}
		fmt.Fprintf(l.out, "\n$ kubectl get %s\n%s", what, out)
	}
	return nil
}

// Play prints the commands of a script, one in each line, and runs them as the administrator in the repository.
func (l *Lab) Play(ctx context.Context, script string) error {
	runtime.LockOSThread() // see Spawn
	defer runtime.UnlockOSThread()
	for line := range strings.Lines(script) {
		fmt.Fprintf(l.out, "\n$ %s", line)
		command := exec.CommandContext(ctx, "bash", "-c", line)
		command.Dir, command.Stdout, command.Stderr = l.Path(), l.out, l.out
		command.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig, "PATH="+l.Path("bin")+":"+os.Getenv("PATH"))
		command.SysProcAttr = workdir.ChildAttributes()
		if err := command.Run(); err != nil {
			return fmt.Errorf("running %q: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

// Watch prints each change of a line per Machine, which a jsonpath returns, until done returns true.
func (l *Lab) Watch(ctx context.Context, limit time.Duration, kind, jsonpath string,
	done func(lines string) bool) error {
	last, started := "", time.Now()
	return l.Until(ctx, limit, "all Machines run", func(ctx context.Context) (bool, error) {
		out, err := l.Kubectl(ctx, "get", kind, "-o", "jsonpath="+jsonpath)
		if err != nil {
			return false, err
		}
		if line := strings.ReplaceAll(strings.TrimSpace(out), "\n", ", "); line != last {
			last = line
			fmt.Fprintf(l.out, "%5.1fs  %s\n", time.Since(started).Seconds(), line)
		}
		return done(out), nil
	})
}

// Close stops the operator and the cluster. The data stays.
func (l *Lab) Close(ctx context.Context) error { return errors.Join(l.end(), l.Cluster.Down(ctx)) }

// end stops the processes beside the cluster.
func (l *Lab) end() error {
	var failed error
	if l.Operator != nil {
		failed = l.Operator.Stop()
	}
	return errors.Join(failed, l.unroute())
}

// WebhookAddress is the address of the manager's webhooks.
func (l *Lab) WebhookAddress() string { return "127.0.0.1:" + l.webhookPort }
