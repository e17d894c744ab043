package lab

import (
	"context"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// webhookKinds are what the install tree registers webhooks by.
const webhookKinds = "WebhookConfiguration"

// InstallWebhooks registers the webhooks of the install tree. A development cluster has no network for Services, so that the API
// server is given a loopback address in place of the Service; all else is as it is in the tree.
func (l *Lab) InstallWebhooks(ctx context.Context) error {
	_, hooks, err := l.manifests(ctx)
	if err != nil {
		return err
	}
	return l.apply(ctx, hooks)
}

// RemoveWebhooks takes them off the API server, which goes on asking for a moment.
func (l *Lab) RemoveWebhooks(ctx context.Context) error {
	_, err := l.kubectl(ctx, nil, "delete", "--ignore-not-found",
		"mutatingwebhookconfiguration,validatingwebhookconfiguration", "--selector=app.kubernetes.io/name=machine-iac-operator")
	return err
}

// manifests returns the install trees: webhooks, which call this machine, and all else as it is.
func (l *Lab) manifests(ctx context.Context) (others, hooks []string, err error) {
	var documents []string
	for _, tree := range []string{"kubernetes", "controllers"} {
		built, err := l.kubectl(ctx, nil, "kustomize", l.Path("install", tree))
		if err != nil {
			return nil, nil, err
		}
		documents = append(documents, strings.Split(built, "\n---\n")...)
	}
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, nil, fmt.Errorf("reading the install trees: %w", err)
		}
		if !strings.HasSuffix(object.GetKind(), webhookKinds) {
			others = append(others, document)
			continue
		}
		if err := l.callHere(object); err != nil {
			return nil, nil, fmt.Errorf("reading %s %s of the install trees: %w", object.GetKind(), object.GetName(), err)
		}
		local, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, nil, fmt.Errorf("writing %s: %w", object.GetKind(), err)
		}
		hooks = append(hooks, string(local))
	}
	return others, hooks, nil
}

// callHere has the webhooks of a configuration called on this machine.
func (l *Lab) callHere(configuration *unstructured.Unstructured) error {
	hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		fields, ok := hook.(map[string]any)
		if !ok {
			return fmt.Errorf("a webhook is %T", hook)
		}
		path, found, err := unstructured.NestedString(fields, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("webhook %v has no Service with a path", fields["name"])
		}
		fields["clientConfig"] = map[string]any{"url": "https://" + net.JoinHostPort("localhost", l.webhookPort) + path}
	}
	return unstructured.SetNestedSlice(configuration.Object, hooks, "webhooks")
}

// apply makes objects what manifests say, whoever has changed them.
func (l *Lab) apply(ctx context.Context, manifests []string) error {
	input := strings.NewReader(strings.Join(manifests, "\n---\n"))
	_, err := l.kubectl(ctx, input, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}
