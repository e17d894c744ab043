// Command terraform-provider-kubectl is the provider gavinbunney/kubectl, at the version that go.mod pins, and what Machines need beside
// it: objects of the API server are found as a list, which may be empty, where the provider alone knows only what it has made.
//
// Everything else is the provider's own code. It is built from its Go module, since released providers cannot be downloaded everywhere; the
// ordinary way is the registry, or 'tofu providers mirror', without the addition above.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gavinbunney/terraform-provider-kubectl/kubernetes"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	// maxMessage is the size of the largest message, as the provider alone has it. Its kit would take 4 MiB.
	maxMessage = 64 << 20
	// pageSize is how many objects a page of a list has.
	pageSize = 500
)

func main() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{5: {plugin.ProviderPluginName: &tf5server.GRPCProviderPlugin{
			GRPCProvider: func() tfprotov5.ProviderServer { return schema.NewGRPCProviderServer(provider()) },
		}}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxSendMsgSize(maxMessage), grpc.MaxRecvMsgSize(maxMessage))...)
		},
	})
}

func provider() *schema.Provider {
	p := kubernetes.Provider()
	p.DataSourcesMap["kubectl_objects"] = objects()
	return p
}

// objects lists objects of one resource, each as JSON.
func objects() *schema.Resource {
	text := func(required bool) *schema.Schema {
		return &schema.Schema{Type: schema.TypeString, Required: required, Optional: !required}
	}
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"api_version":    text(true),
			"resource":       text(true), // in the plural, as in the path of a request
			"namespace":      text(false),
			"label_selector": text(false),
			"field_selector": text(false),
			"with_status":    {Type: schema.TypeBool, Optional: true, Default: false},
			"objects":        {Type: schema.TypeList, Computed: true, Elem: &schema.Schema{Type: schema.TypeString}},
		},
		ReadContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			listed, err := list(ctx, d, meta.(*kubernetes.KubeProvider))
			if err != nil {
				return diag.FromErr(err)
			}
			if err := d.Set("objects", listed); err != nil {
				return diag.FromErr(err)
			}
			d.SetId("-") // nobody asks for it
			return nil
		},
	}
}

func list(ctx context.Context, d *schema.ResourceData, kube *kubernetes.KubeProvider) ([]string, error) {
	client, err := dynamic.NewForConfig(&kube.RestConfig)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	version, err := k8sschema.ParseGroupVersion(d.Get("api_version").(string))
	if err != nil {
		return nil, err
	}
	resource := version.WithResource(d.Get("resource").(string))
	options := metav1.ListOptions{LabelSelector: d.Get("label_selector").(string), FieldSelector: d.Get("field_selector").(string), Limit: pageSize}
	found := []string{}
	for {
		page, err := client.Resource(resource).Namespace(d.Get("namespace").(string)).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for i := range page.Items {
			text, err := encode(&page.Items[i], d.Get("with_status").(bool))
			if err != nil {
				return nil, err
			}
			found = append(found, text)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return found, nil
		}
	}
}

// encode returns an object without what is long and says nothing of it.
func encode(object *unstructured.Unstructured, withStatus bool) (string, error) {
	object.SetManagedFields(nil)
	if !withStatus {
		unstructured.RemoveNestedField(object.Object, "status")
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", object.GetName(), err)
	}
	return string(raw), nil
}
