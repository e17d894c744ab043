package stub

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

// Plugin is a provider's own process.
type Plugin struct {
	process    *tofu.Plugin
	connection *connection
}

// StartPlugin starts a provider in a folder that is made for it. A sandbox that is not nil confines it.
func StartPlugin(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*Plugin, error) {
	process, err := tofu.StartPlugin(dir, file, environment, confined)
	if err != nil {
		return nil, err
	}
	network, address := process.Address()
	connected, err := dial(network, address, process.ProtocolVersion())
	if err != nil {
		return nil, errors.Join(err, process.End())
	}
	return &Plugin{process: process, connection: connected}, nil
}

// Protocol returns the version of the plugin protocol that it speaks: 5 or 6.
func (p *Plugin) Protocol() int { return p.process.ProtocolVersion() }

// Schemas returns the response with all schemas.
func (p *Plugin) Schemas(ctx context.Context) ([]byte, error) { return p.connection.schemas(ctx) }

// Call is a [Caller].
func (p *Plugin) Call(ctx context.Context, method string, request []byte) ([]byte, error) {
	return p.connection.call(ctx, method, request)
}

// Close ends the process.
func (p *Plugin) Close() error { return errors.Join(p.connection.client.Close(), p.process.End()) }
