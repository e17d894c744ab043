// Package lab sets the operator up on a development cluster as an administrator would: the install tree applied as it is, the
// credentials of the kubemark module, and the manager as a process, in place of its Pods, that has nothing but its service account's
// token. The demo, the end-to-end tests and the benchmarks stand on it.
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
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

const (
	// Namespace is where the install tree puts the operator, and where Machines live.
	Namespace = "openshift-machine-api"
	// serviceAccount is the operator's own.
	serviceAccount = "machine-api-controllers"
	// deployment is the operator's own.
	deployment = "machine-api-controllers"
	// credentials is the kubemark module's example.
	credentials = "modules/kubemark/examples/credentials.yaml"
	// exampleServer is the address in it, which an administrator replaces.
	exampleServer = "https://kubernetes.default.svc"

	pollInterval = 200 * time.Millisecond
)

// Options say where things are. Zero values take the defaults named.
type Options struct {
	// Root is the repository; the working folder when empty.
	Root string
	// Dir is the cluster's data folder; .dev in Root when empty.
	Dir string
	// Progress gets a line per step; nothing when nil.
	Progress io.Writer
	// Operator has machine-api-operator install the controllers and keep them. Without it install/controllers is applied as it is, which is what
	// `kubectl apply -k` does, and nothing runs beside the manager.
	Operator bool
	// Release is what runs as the operator.
	Release OperatorInstance
	// NodeLease is how long the leases of Nodes last; as those of kubelets when zero. See [cluster.Options].
	NodeLease time.Duration
	// Audit has the requests of the operator and of the manager written to the cluster's audit log.
	Audit bool
}

// Lab is a development cluster with the operator installed.
type Lab struct {
	Cluster *cluster.Cluster
	// Operator is the machine-api-operator that runs, nil without.
	Operator *Operator
	root     string
	dir      string
	out      io.Writer
	// webhookPort is where managers serve webhooks, one manager at a time.
	webhookPort string
	unroute     func() error
}

// Open brings the cluster up and installs the operator. It may be called again for the same folder.
func Open(ctx context.Context, o Options) (*Lab, error) {
	if o.Root == "" {
		o.Root = "."
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, fmt.Errorf("finding the repository: %w", err)
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(root, ".dev")
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	settings := cluster.Options{Dir: o.Dir, Bin: filepath.Join(root, "bin"), NodeLease: o.NodeLease}
	if o.Audit {
		settings.Audit = []string{UserOf(operatorAccount), UserOf(serviceAccount)}
	}
	made, err := cluster.New(settings)
	if err != nil {
		return nil, err
	}
	if err := made.Up(ctx, o.Progress); err != nil {
		return nil, err
	}
	l := &Lab{Cluster: made, root: root, dir: made.Dir(), out: o.Progress}
	if l.webhookPort, err = freePort(); err != nil {
		return nil, err
	}
	// Webhooks are called through their Service, as everywhere.
	if l.unroute, err = made.RouteServices(l.WebhookAddress()); err != nil {
		return nil, err
	}
	if err := l.install(ctx, o); err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// UserOf returns the user that a ServiceAccount of the namespace is.
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
	return l.applyCredentials(ctx)
}

// applyTrees installs the controllers without the operator.
func (l *Lab) applyTrees(ctx context.Context) error {
	fmt.Fprintln(l.out, "applying install/kubernetes/crds and install/controllers")
	for _, tree := range []string{"kubernetes/crds", "controllers"} {
		if err := l.ApplyTree(ctx, l.Path("install", tree)); err != nil {
			return err
		}
	}
	// The manager runs as a process here. Its Pods would be played on the first Node that there is, and be drained from it.
	if _, err := l.Kubectl(ctx, "scale", "deployment", deployment, "--replicas=0"); err != nil {
		return err
	}
	return l.established(ctx)
}

// ApplyTree makes objects what a kustomize tree says, whoever has changed them.
func (l *Lab) ApplyTree(ctx context.Context, folder string) error {
	_, err := l.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "-k", folder)
	return err
}

func (l *Lab) established(ctx context.Context) error {
	_, err := l.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	return err
}

func (l *Lab) applyCredentials(ctx context.Context) error {
	fmt.Fprintln(l.out, "applying", credentials)
	manifest, err := os.ReadFile(l.Path(credentials))
	if err != nil {
		return fmt.Errorf("reading the credentials' manifest: %w", err)
	}
	manifest = bytes.ReplaceAll(manifest, []byte(exampleServer), []byte(l.Cluster.Server()))
	if _, err := l.kubectl(ctx, bytes.NewReader(manifest), "apply", "-f", "-"); err != nil {
		return err
	}
	return l.Until(ctx, time.Minute, "the token controller fills the credentials in", func(ctx context.Context) (bool, error) {
		token, err := l.Kubectl(ctx, "get", "secret", "kubemark-credentials", "-o", "jsonpath={.data.token}")
		return token != "", err
	})
}

// createNamespace creates the namespace, unless it exists.
func (l *Lab) createNamespace(ctx context.Context) error {
	found, err := l.kubectl(ctx, nil, "get", "namespace", Namespace, "--ignore-not-found", "--output=name")
	if err != nil || found != "" {
		return err
	}
	_, err = l.kubectl(ctx, nil, "create", "-f", l.Path("install", "kubernetes", "namespace.yaml"))
	return err
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
	command := exec.CommandContext(ctx, l.Path("bin", "kubectl"), append([]string{"--kubeconfig", l.Cluster.AdminKubeconfig()}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, &out, &problems
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// Until polls until done returns true. An error of done is kept and reported when the time is over.
func (l *Lab) Until(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, error)) error {
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

// Close stops the operator and the cluster; its data stays.
func (l *Lab) Close(ctx context.Context) error { return errors.Join(l.end(), l.Cluster.Down(ctx)) }

// end stops what the lab runs beside the cluster.
func (l *Lab) end() error {
	var failed error
	if l.Operator != nil {
		failed = l.Operator.Stop()
	}
	return errors.Join(failed, l.unroute())
}

// WebhookAddress is where a manager serves webhooks.
func (l *Lab) WebhookAddress() string { return "127.0.0.1:" + l.webhookPort }
