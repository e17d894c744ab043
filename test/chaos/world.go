package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/observe"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

const (
	kubemarkCredentials  = "chaos-kubemark"
	openstackCredentials = "chaos-openstack"
	userDataSecret       = "chaos-user-data"
	// otherCloud is another project of the simulated cloud, by its name in the clouds.yaml.
	otherCloud = "elsewhere"
	// runTimeout is the deadline of the managers' runs.
	runTimeout = 90 * time.Second
)

// world is a development cluster with two managers, a cloud, and the proxies between them.
type world struct {
	root, dir string
	options   Options
	lab       *lab.Lab
	// client and clients are the administrator's, without a cache.
	client   client.Client
	clients  kubernetes.Interface
	replicas [2]*replica
	flags    []string
	// infra is the API proxy for kubemark's providers.
	infra *apiproxy.Proxy
	cloud *openstack.Cloud
	// mine and theirs are logins for the cloud's projects.
	mine, theirs openstack.Login
	nodes        *observe.NodeLog
	kubelets     *kubelets
	canaries     *canaries
	begun        time.Time
}

// Options configure rounds.
type Options struct {
	// Lease is the managers' lease duration, Patience bounds how long a round may take to settle.
	Lease, Patience time.Duration
	Limits          Limits
	Verbose         bool
}

func (w *world) say(format string, values ...any) {
	if w.options.Verbose {
		fmt.Fprintf(os.Stdout, "%7.1fs    %s\n", time.Since(w.begun).Seconds(), fmt.Sprintf(format, values...))
	}
}

func openWorld(ctx context.Context, root, dir string, o Options) (*world, error) {
	w := &world{root: root, dir: dir, options: o, begun: time.Now(), canaries: newCanaries()}
	var err error
	if w.lab, err = lab.Open(ctx, lab.Options{Root: root, Dir: dir}); err != nil {
		return w, err
	}
	if err := errors.Join(w.lab.RemoveWebhooks(ctx), w.lab.WriteOperatorKubeconfig(ctx)); err != nil {
		return w, err
	}
	config, err := w.lab.Cluster.AdminConfig()
	if err != nil {
		return w, err
	}
	config.QPS = -1
	config.Timeout = 20 * time.Second // do not block on a stopped API server
	scheme, err := controlplane.Scheme()
	if err != nil {
		return w, err
	}
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return w, err
	}
	if w.clients, err = kubernetes.NewForConfig(config); err != nil {
		return w, err
	}
	watching := *config
	watching.Timeout = 0
	watcher, err := kubernetes.NewForConfig(&watching)
	if err != nil {
		return w, err
	}
	if w.nodes, err = observe.WatchNodes(ctx, watcher); err != nil {
		return w, err
	}
	if err := w.openInfrastructure(ctx); err != nil {
		return w, err
	}
	return w, w.startManagers(ctx)
}

func (w *world) openInfrastructure(ctx context.Context) error {
	authority, err := w.lab.Cluster.CAData()
	if err != nil {
		return err
	}
	if w.infra, err = apiproxy.Open(w.lab.Cluster.Server(), authority); err != nil {
		return err
	}
	w.cloud = openstack.Start()
	w.mine = openstack.Login{Cloud: openstack.CloudName, Username: openstack.Username,
		Password: openstack.Password, Project: "openshift"}
	w.theirs = openstack.Login{Cloud: otherCloud, Username: "guest",
		Password: w.canaries.fresh("password of another account"), Project: "guests"}
	w.cloud.AddProject(w.theirs)
	w.kubelets = startKubelets(ctx, w)
	userData := map[string][]byte{"userData": []byte(w.canaries.fresh("user data"))}
	return errors.Join(
		w.putSecret(ctx, userDataSecret, userData),
		w.rotateKubemark(ctx),
		w.rotateOpenStack(ctx),
	)
}

// rotateKubemark replaces the token of kubemark's providers.
func (w *world) rotateKubemark(ctx context.Context) error {
	seconds := int64((24 * time.Hour).Seconds())
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := w.clients.CoreV1().ServiceAccounts(lab.Namespace).CreateToken(ctx, "kubemark",
		asked, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("getting a token for kubemark: %w", err)
	}
	w.canaries.add("kubemark's token", token.Status.Token)
	return w.putSecret(ctx, kubemarkCredentials, map[string][]byte{
		"server": []byte(w.infra.Address()), "ca.crt": w.infra.Authority(), "token": []byte(token.Status.Token),
	})
}

// rotateOpenStack changes the cloud user's password.
func (w *world) rotateOpenStack(ctx context.Context) error {
	w.mine.Password = w.canaries.fresh("password of the cloud")
	w.cloud.Rotate(w.mine.Username, w.mine.Password)
	return w.putSecret(ctx, openstackCredentials, w.clouds(w.mine, w.theirs))
}

func (w *world) clouds(logins ...openstack.Login) map[string][]byte {
	return map[string][]byte{"clouds.yaml": []byte(w.cloud.CloudsYAMLOf(logins...)), "cacert": []byte(w.cloud.CACert())}
}

// putSecret creates or updates a Secret.
func (w *world) putSecret(ctx context.Context, name string, data map[string][]byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab.Namespace, Name: name, Labels: map[string]string{references.Label: "true"},
	}, Data: data}
	err := w.client.Create(ctx, secret)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		there := &corev1.Secret{}
		if err = w.client.Get(ctx, client.ObjectKeyFromObject(secret), there); err == nil &&
			there.DeletionTimestamp != nil {
			err = errors.New("it is still being deleted, until a manager takes its finalizer off")
		} else if err == nil {
			there.Labels, there.Data = secret.Labels, secret.Data
			err = w.client.Update(ctx, there)
		}
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", name, err)
	}
	return nil
}

func (w *world) startManagers(ctx context.Context) error {
	lease := w.options.Lease
	wanted := []string{
		// Reserve half of the lease for the end of engines: on a busy machine, a supervisor with less would kill them
		// at random.
		"--leader-elect-lease-duration=" + lease.String(), "--leader-elect-renew-deadline=" + (lease / 2).String(),
		"--leader-elect-retry-period=" + (lease / 8).String(),
		"--webhook-enabled=false", "--cluster-id=demo", "--max-concurrent-runs=4",
		"--drift-interval=40s", "--run-timeout=" + runTimeout.String(), "--shutdown-grace=4s",
		"--interrupt-grace=8s", "--zap-log-level=debug",
	}
	// its exit status is not zero
	help, _ := exec.CommandContext(ctx, filepath.Join(w.root, "bin", "machine-controllers"), "--help").CombinedOutput()
	for _, flag := range wanted {
		if name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "="); strings.Contains(string(help), name) {
			w.flags = append(w.flags, flag)
		}
	}
	if err := w.quickModules(); err != nil {
		return err
	}
	for i, name := range []string{"a", "b"} {
		var err error
		if w.replicas[i], err = newReplica(w, name); err != nil {
			return err
		}
		if err := w.replicas[i].start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close stops everything. The data folder stays.
func (w *world) close(ctx context.Context) error {
	var failed []error
	for _, r := range w.replicas {
		if r != nil {
			failed = append(failed, r.close())
		}
	}
	if w.kubelets != nil {
		w.kubelets.close()
	}
	if w.nodes != nil {
		w.nodes.Close()
	}
	w.canaries.close()
	if w.infra != nil {
		w.infra.Close()
	}
	if w.cloud != nil {
		w.cloud.Close()
	}
	if w.lab != nil {
		failed = append(failed, w.lab.Close(ctx))
	}
	return errors.Join(failed...)
}

func randomText() string { return strings.ToLower(rand.Text()) }

// until polls until check returns nil, and returns its last error when the limit expires.
func until(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	const poll = 250 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(poll):
		}
	}
}
