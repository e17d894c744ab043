package offline

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

// plugin is a real provider's process.
type plugin struct {
	process    *tofu.Plugin
	connection *connection
}

// startPlugin starts a provider in dir, which it creates. The sandbox is optional.
func startPlugin(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*plugin, error) {
	process, err := tofu.StartPlugin(dir, file, environment, confined)
	if err != nil {
		return nil, err
	}
	connected, err := dial(process.Dial, process.ProtocolVersion())
	if err != nil {
		return nil, errors.Join(err, process.End())
	}
	return &plugin{process: process, connection: connected}, nil
}

// Protocol returns the provider's version of the plugin protocol: 5 or 6.
func (p *plugin) Protocol() int { return p.process.ProtocolVersion() }

// Schemas returns the response with all schemas.
func (p *plugin) Schemas(ctx context.Context) ([]byte, error) { return p.connection.schemas(ctx) }

// Call is a [caller].
func (p *plugin) Call(ctx context.Context, method string, request []byte) ([]byte, error) {
	return p.connection.call(ctx, method, request)
}

// Close ends the process.
func (p *plugin) Close() error { return errors.Join(p.connection.client.Close(), p.process.End()) }
