package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/servingcert"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/selfsigned"
	"github.com/machine-iac/machine-iac-operator/webhooks"
)

// Names in install/controllers/webhooks. The Service and the configurations have the Machine API
// Operator's names.
const (
	webhookService       = "machine-api-operator-webhook"
	webhookConfiguration = "machine-api"
	webhookSecret        = "machine-iac-webhook-cert"
)

// metricsServices are the Services of the metrics. Their clients trust the authority of the webhooks'
// certificate, so that it is valid for them, too.
var metricsServices = []string{"machine-api-controllers", "machine-api-operator"}

// hooks holds the webhook server and, unless --webhook-cert-dir is set, the keeper of its
// certificate. Both are nil without webhooks.
type hooks struct {
	server webhook.Server
	keeper *servingcert.Keeper
}

func newHooks(o options) (hooks, error) {
	if !o.webhooks {
		return hooks{}, nil
	}
	serving := webhook.Options{Port: o.webhookPort, CertDir: o.webhookCertDir, TLSOpts: []func(*tls.Config){o.tls}}
	if o.webhookCertDir != "" {
		return hooks{server: webhook.NewServer(serving)}, nil
	}
	own := o.ownNamespace()
	keeper, err := servingcert.New(servingcert.Options{
		Secret:        types.NamespacedName{Namespace: own, Name: webhookSecret},
		DNSNames:      servingNames(own),
		Configuration: webhookConfiguration,
	})
	if err != nil {
		return hooks{}, err
	}
	serving.TLSOpts = append(serving.TLSOpts, func(config *tls.Config) { config.GetCertificate = keeper.GetCertificate })
	return hooks{server: webhook.NewServer(serving), keeper: keeper}, nil
}

// hookOptions returns the options of the webhooks.
func (o *options) hookOptions(
	catalog *module.Catalog, cluster module.ClusterReader, granted *rights.Reader, identity *installation.Installation,
) webhooks.Options {
	return webhooks.Options{
		Installation: identity, Namespace: o.ownNamespace(),
		Catalog: catalog, ClusterID: o.clusterID, ClusterValues: o.clusterValues(), Cluster: cluster, Rights: granted,
		Lacking: o.lacking(), DisabledGates: o.disabledGates(),
		References: o.references(), ServedElsewhere: !slices.Contains(o.controllers.chosen(), machine.Name),
	}
}

// lacking returns the function that names the providers that a module needs and the mirror lacks. It is nil
// if engines may get them elsewhere.
func (o *options) lacking() func(*module.Module) []string {
	if o.providerMirror == "" || o.allowDownloads || o.jobs.place == inJobs {
		return nil
	}
	var pinned sync.Map // by digest
	return func(m *module.Module) (names []string) {
		known, ok := pinned.Load(m.Digest())
		if !ok {
			known, _ = pinned.LoadOrStore(m.Digest(), provider.Pinned(m.Files()))
		}
		for _, one := range provider.Lacking(o.providerMirror, known.([]provider.Requirement)) {
			names = append(names, one.String())
		}
		return names
	}
}

// disabledGates returns the feature gates that are false.
func (o *options) disabledGates() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.gates)), func(name string) bool { return o.gates[name] })
}

// references returns the policy for Secrets in providerSpecs.
func (o *options) references() *references.Policy {
	return references.New(o.secretReferences, o.usableSecrets...)
}

// servingNames returns the DNS names of the servers: those of the Services, and localhost for
// development.
func servingNames(namespace string) []string {
	names := []string{webhookService + "." + namespace + ".svc", "localhost"}
	for _, service := range metricsServices {
		names = append(names, service+"."+namespace+".svc")
	}
	return names
}

// metricsTLS makes the metrics endpoint use the webhooks' certificate, if the manager keeps one.
func (h hooks) metricsTLS(config *tls.Config) {
	if h.keeper != nil {
		config.GetCertificate = selfsigned.Unless(h.keeper.GetCertificate)
	}
}

// add registers the webhooks and their readiness check with the manager.
func (h hooks) add(ctx context.Context, mgr manager.Manager, live client.Client, options webhooks.Options) (err error) {
	if h.server == nil {
		return nil
	}
	if options.Self, err = serviceAccount(ctx, live); err != nil {
		return err
	}
	if h.keeper != nil {
		if err := h.keeper.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if err := webhooks.SetupWithManager(mgr, options); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhooks", h.ready); err != nil {
		return fmt.Errorf("adding the readiness check of the webhooks: %w", err)
	}
	return nil
}

// serviceAccount returns the user of this process if it is a service account. A person's kubeconfig
// may be in use instead.
func serviceAccount(ctx context.Context, live client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := live.Create(ctx, review); err != nil {
		return "", fmt.Errorf("reading this process's user from the API server: %w", err)
	}
	if user := review.Status.UserInfo.Username; strings.HasPrefix(user, "system:serviceaccount:") {
		return user, nil
	}
	return "", nil
}

// ready returns nil once the webhooks are served. Without a certificate the server is not called,
// because it would log an error each time.
func (h hooks) ready(request *http.Request) error {
	if h.keeper != nil {
		if _, err := h.keeper.GetCertificate(nil); err != nil {
			return err
		}
	}
	return h.server.StartedChecker()(request)
}

// ownNamespace returns the namespace of this process and its Service; outside of a cluster it is
// the managed namespace.
func (o *options) ownNamespace() string {
	if own := os.Getenv("POD_NAMESPACE"); own != "" {
		return own
	}
	if own, err := os.ReadFile(serviceAccountNamespace); err == nil {
		return strings.TrimSpace(string(own))
	}
	return o.namespace
}
