// Package modulelist keeps the ConfigMap in which the manager lists its modules and whether it has
// their providers. It is for people: no decision is based on it.
package modulelist

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// ConfigMap is its name, in the namespace of the Machines.
	ConfigMap = "machine-iac-modules"
	key       = "modules.json"
)

// Status says whether the manager has a provider.
type Status string

// The values of Status.
const (
	Present Status = "Present"
	Missing Status = "Missing"
	// Download means that it is downloaded when a Machine first needs it.
	Download Status = "Download"
	// Unknown means that runs execute elsewhere, in Jobs of another image.
	Unknown Status = "Unknown"
)

// Provider is a provider that a module needs in one version, or a module that pins none.
type Provider struct {
	Module   string `json:"module"`
	Engine   string `json:"engine"`
	Provider string `json:"provider,omitempty"`
	Version  string `json:"version,omitempty"`
	Status   Status `json:"status,omitempty"`
}

// Write writes the list, unless it is there already.
func Write(ctx context.Context, to client.Client, namespace string, list []Provider) error {
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("writing the list of modules: %w", err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ConfigMap}}
	if _, err := controllerutil.CreateOrUpdate(ctx, to, kept, func() error {
		kept.Data = map[string]string{key: string(text)}
		return nil
	}); err != nil {
		return fmt.Errorf("writing the ConfigMap %s/%s: %w", namespace, ConfigMap, err)
	}
	return nil
}

// Read reads the list.
func Read(ctx context.Context, from client.Reader, namespace string) ([]Provider, error) {
	kept := &corev1.ConfigMap{}
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ConfigMap}, kept); err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s/%s: %w", namespace, ConfigMap, err)
	}
	var list []Provider
	if err := json.Unmarshal([]byte(kept.Data[key]), &list); err != nil {
		return nil, fmt.Errorf("reading %s of the ConfigMap %s/%s: %w; delete it, and the manager writes it again", key,
			namespace, ConfigMap, err)
	}
	return list, nil
}
