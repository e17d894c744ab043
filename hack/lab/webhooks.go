package lab

import "context"

// Both are named machine-api.
const webhookConfigurations = "mutatingwebhookconfigurations,validatingwebhookconfigurations"

// InstallWebhooks registers the webhooks of the install tree. With an operator, it is a no-op: the operator registers
// them.
func (l *Lab) InstallWebhooks(ctx context.Context) error {
	if l.Operator != nil {
		return l.Set(ctx, nil)
	}
	return l.ApplyTree(ctx, l.Path("install", "controllers", "webhooks"))
}

// RemoveWebhooks unregisters the webhooks. The API server may still call them for a moment.
func (l *Lab) RemoveWebhooks(ctx context.Context) error {
	if l.Operator != nil {
		return l.Set(ctx, map[string]string{"webhooks": "Disabled"})
	}
	_, err := l.kubectl(ctx, nil, "delete", "--ignore-not-found", webhookConfigurations,
		"--selector=app.kubernetes.io/name=machine-iac-operator")
	return err
}
