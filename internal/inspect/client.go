package inspect

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient answers a client for people: it asks the API server itself, gives up at the first refusal, and its errors say what mends them.
// It knows Machines, MachineSets, Secrets, ConfigMaps, Nodes, Namespaces and Events, and how OpenShift describes a cluster.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme), machinev1beta1.Install(scheme), configv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	live, err := client.New(config, client.Options{Scheme: scheme, Mapper: kinds()})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	return once{Client: live, host: config.Host}, nil
}

// kinds are known, so that the API server need not be asked about them first.
func kinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Machine", "MachineSet"} {
		mapper.Add(machinev1beta1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Infrastructure", "Proxy"} {
		mapper.Add(configv1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(eventsv1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	for _, kind := range []string{"Namespace", "Node"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return mapper
}
