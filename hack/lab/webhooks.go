package lab

import "context"

// Both are called machine-api.
const webhookConfigurations = "mutatingwebhookconfigurations,validatingwebhookconfigurations"

// InstallWebhooks registers the webhooks of the install tree: the operator does, where there is one.
func (l *Lab) InstallWebhooks(ctx context.Context) error {
	if l.Operator != nil {
		return l.Set(ctx, nil)
	}
	return l.ApplyTree(ctx, l.Path("install", "controllers", "webhooks"))
}

// RemoveWebhooks takes them off the API server, which goes on asking for a moment.
func (l *Lab) RemoveWebhooks(ctx context.Context) error {
	if l.Operator != nil {
		return l.Set(ctx, map[string]string{"webhooks": "Disabled"})
	}
	_, err := l.kubectl(ctx, nil, "delete", "--ignore-not-found", webhookConfigurations, "--selector=app.kubernetes.io/name=machine-iac-operator")
	return err
}
