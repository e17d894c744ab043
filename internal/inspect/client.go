package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// NewClient returns a client for people: it caches nothing, gives up at the first error, and its errors say how to fix what is wrong.
// It knows the Machine API's kinds, Secrets, ConfigMaps, Nodes, Namespaces, Events, Pods and PodDisruptionBudgets, and how OpenShift describes
// a cluster.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme, Mapper: kinds()})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	return noRetry{Client: live, host: config.Host}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme), policyv1.AddToScheme(scheme),
		machinev1beta1.Install(scheme), v1beta1.AddToScheme(scheme), configv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// kinds are known, so that nothing has to be discovered. Besides, "machine" means a Machine of the Machine API here, also in a cluster that
// has another kind of that name, such as the Cluster API's.
func kinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	short := v1beta1.GroupVersion.WithResource("md")
	mapper.AddSpecific(v1beta1.GroupVersion.WithKind(kindDeployment), short, short, meta.RESTScopeNamespace)
	for _, kind := range []string{kindMachine, kindSet, kindDeployment} {
		mapper.Add(machinev1beta1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Infrastructure", "Proxy"} {
		mapper.Add(configv1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	for _, kind := range []string{"ConfigMap", "Secret", "Pod"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(eventsv1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	for _, kind := range []string{kindNamespace, kindNode} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return mapper
}

// clientGetter gives cli-runtime's resource builder a client whose requests end with a context: the builder takes none.
type clientGetter struct {
	config *rest.Config
	done   func(*http.Request) *http.Request
}

var _ resource.RESTClientGetter = clientGetter{}

func newClientGetter(ctx context.Context, config *rest.Config) clientGetter {
	return clientGetter{config: config, done: func(request *http.Request) *http.Request {
		own, cancel := context.WithCancelCause(request.Context())
		context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		return request.WithContext(own)
	}}
}

// ToRESTConfig implements resource.RESTClientGetter.
func (g clientGetter) ToRESTConfig() (*rest.Config, error) {
	config := rest.CopyConfig(g.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return next.RoundTrip(g.done(request)) })
	})
	return config, nil
}

// ToRESTMapper implements resource.RESTClientGetter.
func (g clientGetter) ToRESTMapper() (meta.RESTMapper, error) { return kinds(), nil }

// ToDiscoveryClient implements resource.RESTClientGetter.
func (g clientGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return nil, errors.New("nothing is discovered: all kinds are known")
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
